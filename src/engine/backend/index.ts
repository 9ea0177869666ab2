/** The contract between the engine and what computes its steps, and the backend of a GGUF model. */
export {
  type Backend,
  type BackendLimits,
  type ContextSettings,
  type DraftHead,
  type HeadFile,
  MEMORY_COPY,
  MEMORY_FORGET,
  MEMORY_REMOVE,
  MEMORY_RESTORE,
  NO_ADAPTER,
  PASS_TOKENS,
  type RowEdit,
  type Step,
  type StepResult,
} from './backend.ts';
export { ggufBackend } from './gguf-backend.ts';
export { finishEdits, hookedSamples } from './row-edits.ts';
