/** JavaScript values -> the addon, and back. The only access to native code: its loading, all its types, its libraries and devices. */
export { type Addon, loadAddon } from './addon.ts';
export { openDecoder } from './decoder.ts';
export type { DraftSources, DraftWork } from './drafts.ts';
export type {
  ContextLimits,
  ContextOptions,
  Device,
  DraftColumns,
  EmbedderOptions,
  HookedRows,
  Kernels,
  NativeContext,
  NativeEmbedder,
  NativeModel,
  NativeStepInput,
  SampledRows,
  StepMedia,
  StepRows,
  TakenExperts,
} from './engine.ts';
export { NO_EXPERT } from './engine.ts';
export { type EngineReport, engineReport, isEngineBroken, joinEngineReports } from './engine-report.ts';
export type { Handle, NativeSpec } from './grammar.ts';
export { grammarAddon } from './grammar-addon.ts';
export { knowingErrors } from './known-errors.ts';
export { devices, engineBuild, freeGpuBytes, isEngineSince, openLibraries, usesGpu } from './libraries.ts';
export type { NativeChunk, NativeMedia, NativeProjector } from './media.ts';
export { onDisk } from './on-disk.ts';
export { ROW_STATUS } from './row-status.ts';
export type {
  SamplerHandle,
  SamplerPlanHandle,
  SamplerPlanOptions,
  TokenTextsHandle,
} from './sampler.ts';
export { defaultThreads } from './threads.ts';
export type {
  AdapterWeights,
  HeaderEntries,
  LoraFactors,
  ModelFacts,
  NativeColumn,
  NativeFullTrainer,
  NativeParameter,
  NativeStep,
  NativeTrainer,
  NativeTrainerOptions,
} from './trainer.ts';
