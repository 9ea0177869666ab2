/** A checked request on a loaded model -> its answer, whole or as a stream. The request's path in one page. */
import { randomUUID } from 'node:crypto';
import { OnpolicyError } from '../errors.ts';
import type { ModelLease } from '../models/index.ts';
import type { ChatCompletion, ValidChatRequest } from '../protocol/index.ts';
import { ChatCompletionStream } from '../protocol/service/index.ts';
import { Completion } from './completion.ts';
import { planFeatures } from './features/index.ts';
import { type OpenContext, type OpenedRequest, openRequest } from './open-request.ts';
import { type AnswerHeader, toResponse } from './response.ts';
import { toChunks } from './stream.ts';
import { contentText } from './template-message.ts';
import type { RequestTrace } from './trace.ts';

/** Inputs of an answer in addition to the request and the model. */
export type AnswerContext = OpenContext & {
  /** Span that records the answer; null or absent if the request is not traced. */
  readonly trace?: RequestTrace | null;
};

/** Answers a request. All errors of the request are thrown before its first token is computed. */
export async function answer(
  lease: Pick<ModelLease, 'model' | 'adapter'>,
  request: ValidChatRequest,
  context: AnswerContext,
): Promise<ChatCompletion | ChatCompletionStream> {
  const created = Math.floor(Date.now() / 1000);
  const opened = await openRequest(lease, request, context);
  const completion = new Completion(opened, await planFeatures(opened));
  const header = headerOf(opened, created);
  context.trace?.answered(header, completion);
  completion.hold(context.leases.handOver({}));
  if (!request.stream) {
    await completion.done();
    return toResponse(header, completion);
  }
  const { include_usage, continuous_usage_stats } = request.stream_options;
  return new ChatCompletionStream(
    toChunks(header, completion, { atEnd: include_usage, inEveryChunk: continuous_usage_stats }),
    () => completion.stop(new OnpolicyError('ABORTED', 'the stream was aborted')),
  ).endReasoningWith(() => completion.endReasoning());
}

/** Parts of an opened request that its answer shows. */
type Shown = Pick<
  OpenedRequest,
  'model' | 'adapter' | 'request' | 'prompt' | 'textIds' | 'drawnSeed' | 'warnings'
>;

/** Returns the fields that the response, or each chunk, takes from the request. */
export function headerOf(opened: Shown, created: number): AnswerHeader {
  const { model, adapter, request, prompt, textIds, drawnSeed, warnings } = opened;
  return {
    id: `chatcmpl-${request.request_id ?? randomUUID()}`,
    created,
    model: request.model ?? model.name,
    systemFingerprint: adapter ? `${model.fingerprint}-${adapter.identity}` : model.fingerprint,
    drawnSeed,
    ...replyRole(request),
    usesFunctions: request.uses_functions,
    namesTool: typeof request.tool_choice === 'object',
    promptIds: textIds,
    promptTokens: prompt.ids.length,
    mediaTokens: prompt.media.length === 0 ? null : prompt.ids.length - textIds.length,
    promptText: request.return_prompt_text ? prompt.text : null,
    returnTokenIds: request.return_token_ids,
    wantsLogprobs: request.logprobs,
    returnTimings: request.return_timings || request.timings_per_token,
    timesChunks: request.timings_per_token,
    warnings,
  };
}

/** Returns the role of the reply, and the text that `echo` puts before it. */
function replyRole(request: ValidChatRequest): { role: 'assistant'; echo: string } {
  const last = request.messages.at(-1);
  const role = request.add_generation_prompt ? 'assistant' : (last?.role ?? 'assistant');
  const echo = request.echo && last?.role === role ? contentText(last) : '';
  return { role: role as 'assistant', echo }; // the wire's type names the usual one
}
