/** A runtime whose models run in a process of their own. */
// isolate (which calls go where) -> engine-process (starts it, and again when it dies) -> a peer of `common` (calls as messages). isolated-process.ts is the other side.
export type { OpenArguments, RuntimeState } from './engine-process.ts';
export { isolate } from './isolate.ts';
export { findMethod, METHODS } from './methods.ts';
