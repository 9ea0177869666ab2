/** Records of runs -> other programs that show them. */
export { type MlflowOptions, mlflowTracker } from './mlflow-tracker.ts';
