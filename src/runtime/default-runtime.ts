/** One call -> an answer of a process-wide runtime, which is opened on first use and closed when the process ends. */

import type { ChatCompletionRequest, TrainingJobRequest } from '../protocol/index.ts';
import type {
  CallOptions,
  StreamFlag,
  TrainingJob,
  TypedChatAnswer,
  TypedChatRequest,
} from '../protocol/service/index.ts';
import { createRuntime } from './first-call.ts';
import type { Runtime } from './runtime.ts';

let opened: Promise<Runtime> | undefined;

function defaultRuntime(): Promise<Runtime> {
  opened ??= createRuntime();
  return opened;
}

/**
 * Answers a chat completion request on the process-wide runtime: with `stream: true` as a stream of chunks, else as a whole.
 * @throws OnpolicyError `INVALID_REQUEST` for bad fields, before anything runs; further codes in `ErrorCode`
 */
export async function createCompletion<
  Flag extends StreamFlag = undefined,
  Parsed = undefined,
  Tools extends ChatCompletionRequest['tools'] = undefined,
>(
  request: TypedChatRequest<Flag, Parsed, Tools>,
  options?: CallOptions,
): Promise<TypedChatAnswer<Flag, Parsed, Tools>> {
  const runtime = await defaultRuntime();
  return await runtime.createCompletion(request, options);
}

/**
 * Starts a training job on a registered model of the process-wide runtime. Resolves when it is queued.
 * @throws OnpolicyError `INVALID_REQUEST` for bad fields, before anything runs
 */
export async function train(request: TrainingJobRequest, options?: CallOptions): Promise<TrainingJob> {
  const runtime = await defaultRuntime();
  return await runtime.train(request, options);
}
