/** Options of a runtime -> models that run in child processes. */
// isolation (which calls go where) -> engine-process (starts it, and again when it dies) -> a peer of `common` (calls as messages). program.ts is the other side.
export type { OpenArguments, RuntimeState } from './engine-process.ts';
export { Isolation } from './isolation.ts';
