/** What an open runtime needs, in one file to load. */
export { inspectModel } from './inspect-model.ts';
export { createRuntime } from './runtime.ts';
