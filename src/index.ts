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

export type { HistogramData } from './common/index.ts';
export type { Device, EngineReport, Kernels } from './engine/native/index.ts';
export { type ErrorCode, type ErrorDetail, OnpolicyError, type OnpolicyErrorOptions } from './errors.ts';
export type { Download, DownloadCheck, DownloadsResource } from './models/hub/index.ts';
export type { ExportModel, Fit, ModelExport, Placement } from './models/index.ts';
export type { MediaStats } from './models/media/index.ts';
export type { CacheFileStats, DiskCacheRecord, DiskCachesResource } from './models/prompt-files/index.ts';
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
export { schema } from './protocol/index.ts';
export type * from './protocol/public.ts';
export type {
  AdapterLoader,
  AdaptersResource,
  Answer,
  AnswerStream,
  CallOptions,
  ChatCompletionStream,
  CheckpointsResource,
  Completions,
  ConnectedService,
  CustomGradient,
  EngineStats,
  EngineTimings,
  ModelCard,
  ModelsResource,
  NamedAdapter,
  PooledService,
  PrefixCacheReset,
  ResidentModel,
  ResidentState,
  RunLoss,
  Service,
  StreamedCompletion,
  StreamFlag,
  TextCompletionStream,
  TrainingJob,
  TrainingJobsResource,
  TrainingRun,
  TrainingRunsResource,
  Transcribe,
  TranscriptionAnswer,
  TranscriptionStream,
  TypedChatAnswer,
  TypedChatRequest,
  WithParsed,
} from './protocol/service/index.ts';
export type { SftExample, SftRequest, TrajectoryMessage } from './rl/index.ts';
export { type Recorder, type RecordingEnd, record } from './rl/rollout/index.ts';
export type {
  LocalCheckpointsResource,
  LocalModelsResource,
  LoggedException,
  LoggedTrajectory,
  MetricRecord,
  RunsResource,
  TrajectoryRecord,
} from './rl/store/index.ts';
export { type MlflowOptions, mlflowTracker } from './rl/tracking/index.ts';
export type { RuntimeStats } from './runtime/index.ts';
export {
  createCompletion,
  createRuntime,
  inspectModel,
  type ModelInspection,
  type Runtime,
  train,
} from './runtime/index.ts';
export {
  type LogitsProcessorFactory,
  type LogitsProcessorOptions,
  registerLogitsProcessor,
} from './sampling/index.ts';
export type { AccessEntry, HandlerOptions, Scope, Servable, Token } from './serve/http/index.ts';
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
} from './serve/http/index.ts';
export {
  type FittedMessages,
  fitMessages,
  type Neighbor,
  nearest,
  similarity,
  type Vector,
} from './serve/index.ts';
export {
  type AppTool,
  type AppToolCall,
  connectMcp,
  type McpClient,
  type McpConnection,
  type McpServer,
  mcpTools,
  type RunToolsOptions,
  runTools,
  type ToolLoopEvent,
  type ToolLoopRequest,
  type ToolLoopResult,
  type ToolRun,
} from './serve/tools/index.ts';
export type { CreateMessage, MessageStream, ResponseStream, ResponsesResource } from './serve/wires/index.ts';
