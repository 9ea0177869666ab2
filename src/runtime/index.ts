/** Options -> the service in this process: models, answers, training and their store, connected. */
export { createCompletion, train } from './default-runtime.ts';
export { createRuntime, inspectModel } from './first-call.ts';
export type { ModelInspection } from './inspect-model.ts';
export type { Runtime } from './runtime.ts';
export type { RuntimeStats } from './stats.ts';
