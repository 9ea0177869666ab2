/** Options -> the service in this process: models, answers, training and their store, connected. */
export { createCompletion, train } from './default-runtime.ts';
export { inspectModel, type ModelInspection } from './inspect-model.ts';
export { createRuntime, type Runtime } from './runtime.ts';
export type { RuntimeStats } from './stats.ts';
