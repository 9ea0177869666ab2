/** One line to start: a process-wide runtime that is opened on first use and closed when the process ends. */

import type { ChatCompletionStream } from './answer/index.ts';
import type { ChatCompletion, ChatCompletionRequest, TrainingJobRequest } from './protocol/index.ts';
import { createRuntime, type Runtime } from './runtime.ts';
import type { Answer, CallOptions, StreamFlag, TrainingJob } from './service.ts';

let opened: Promise<Runtime> | undefined;

function defaultRuntime(): Promise<Runtime> {
  opened ??= createRuntime();
  return opened;
}

/**
 * Answers a chat completion request on the process-wide runtime: with `stream: true` as a stream of chunks, else as a whole.
 * @throws OnpolicyError `INVALID_REQUEST` for bad fields, before anything runs; further codes in `ErrorCode`
 */
export async function createCompletion<Flag extends StreamFlag = undefined>(
  request: ChatCompletionRequest & { stream?: Flag },
  options?: CallOptions,
): Promise<Answer<Flag, ChatCompletionStream, ChatCompletion>> {
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
