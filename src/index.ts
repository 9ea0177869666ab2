/// <reference types="node" preserve="true" />
/**
 * Runs a language model inside this process.
 *
 * ```ts
 * import { createCompletion } from 'onpolicy';
 *
 * const answer = await createCompletion({ messages: [{ role: 'user', content: 'What is the capital of Peru?' }] });
 * console.log(answer.choices[0]?.message.content);
 * ```
 * @module
 */

export type {
  AnswerStream,
  ChatCompletionStream,
  TextCompletionStream,
  TranscriptionStream,
} from './answer/index.ts';
export { createCompletion, train } from './default-runtime.ts';
export type { CacheFileStats, DiskCacheRecord, DiskCachesResource } from './disk-cache/index.ts';
export type { EngineStats, EngineTimings, HistogramData } from './engine/index.ts';
export { type ErrorCode, type ErrorDetail, OnpolicyError, type OnpolicyErrorOptions } from './errors.ts';
export type { AccessEntry, HandlerOptions, Scope, Servable, Token } from './http/index.ts';
export {
  type ConnectOptions,
  connect,
  createFetch,
  createHandler,
  createPool,
  type Handler,
  type PoolOptions,
  type ServeOptions,
  type Server,
  serve,
} from './http/index.ts';
export type { Download, DownloadCheck, DownloadsResource } from './hub/index.ts';
export { inspectModel, type ModelInspection } from './inspect-model.ts';
export type { MediaStats } from './media/index.ts';
export type {
  AdaptersResource,
  ExportModel,
  Fit,
  ModelCard,
  ModelExport,
  NamedAdapter,
  Placement,
  ResidentModel,
  ResidentState,
} from './models/index.ts';
export type { Device, Kernels } from './native/index.ts';
export type {
  AdapterOption,
  BatchOptions,
  BatchProgress,
  BatchUrl,
  CacheType,
  Gpu,
  HubOptions,
  InspectOptions,
  MediaOptions,
  MemoryOptions,
  ModelOptions,
  OnProgress,
  PruneRequest,
  RecorderOptions,
  ReportOptions,
  RopeOptions,
  RuntimeOptions,
  ServingLimits,
  SpeculativeConfig,
  TrainingOptions,
} from './protocol/index.ts';
export type * from './protocol/public.ts';
export type { SftExample, SftRequest, TrajectoryMessage } from './rl/index.ts';
export { type Recorder, type RecordingEnd, record } from './rollout/index.ts';
export { createRuntime, type Runtime } from './runtime.ts';
export type { RuntimeStats } from './runtime-stats.ts';
export {
  type LogitsProcessorFactory,
  type LogitsProcessorOptions,
  registerLogitsProcessor,
} from './sampling/index.ts';
export type {
  AdapterLoader,
  Answer,
  CallOptions,
  CheckpointsResource,
  Completions,
  ConnectedService,
  ModelsResource,
  PooledService,
  Service,
  StreamFlag,
  TrainingJob,
  TrainingJobsResource,
  TrainingRunsResource,
  Transcribe,
  TranscriptionAnswer,
} from './service.ts';
export type {
  LocalCheckpointsResource,
  LocalModelsResource,
  LoggedException,
  LoggedTrajectory,
  MetricRecord,
  RunsResource,
  TrajectoryRecord,
} from './store/index.ts';
export { type MlflowOptions, mlflowTracker } from './store/index.ts';
export type { CustomGradient, RunLoss, TrainingRun } from './training-run.ts';
export type { CreateMessage, MessageStream, ResponseStream, ResponsesResource } from './wires/index.ts';
