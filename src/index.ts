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

export type { ChatCompletionStream } from './answer/stream.ts';
export { createCompletion, train } from './default-runtime.ts';
export type { EngineStats } from './engine/engine.ts';
export { type ErrorCode, type ErrorDetail, OnpolicyError, type OnpolicyErrorOptions } from './errors.ts';
export { type ConnectOptions, connect } from './http/connect.ts';
export { createHandler, type Handler } from './http/handler.ts';
export type { HandlerOptions, Scope, Servable, Token } from './http/options.ts';
export { createPool, type PoolOptions } from './http/pool.ts';
export { type ServeOptions, type Server, serve } from './http/serve.ts';
export type { ModelOptions, ServingLimits } from './models/models.ts';
export type { Gpu } from './native/libraries.ts';
export type * from './protocol/chat-completion-response.ts';
export type { LogitsProcessor, NextLogits } from './protocol/logits-processor.ts';
export type * from './protocol/request-types.ts';
export type * from './protocol/resources.ts';
export type { SftConfig, SftExample } from './rl/sft.ts';
export type { SftRequest } from './rl/sft-request.ts';
export type { TrajectoryMessage } from './rl/trajectory.ts';
export { createRuntime, type Runtime } from './runtime.ts';
export type { RuntimeOptions, TrainingOptions } from './runtime-options.ts';
export {
  type LogitsProcessorFactory,
  type LogitsProcessorOptions,
  registerLogitsProcessor,
} from './sampling/logits-processors.ts';
export type {
  CallOptions,
  CheckpointsResource,
  Completions,
  ModelsResource,
  Service,
  TrainingJob,
  TrainingJobsResource,
} from './service.ts';
export type { LocalCheckpointsResource } from './store/checkpoints-resource.ts';
export { type MlflowOptions, mlflowTracker } from './store/mlflow-tracker.ts';
export type { PruneRequest } from './store/prune.ts';
export type { MetricRecord, TrajectoryRecord } from './store/run-log.ts';
export type { RunRecord } from './store/run-record.ts';
export type { LoggedTrajectory } from './store/runs.ts';
export type { RunsResource } from './store/runs-resource.ts';
export type { TrackedMetrics, Tracker } from './store/tracker.ts';
