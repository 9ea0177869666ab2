/** A validated request on a loaded model -> its answer, whole or as a stream. The request's path in one page. */
import { randomBytes, randomUUID } from 'node:crypto';
import { Completion } from './completion.ts';
import { OnpolicyError } from './errors.ts';
import type { ServedModel } from './models.ts';
import { buildPrompt } from './prompt.ts';
import type { ChatCompletion, ValidChatRequest } from './protocol/index.ts';
import { type AnswerHeader, toResponse } from './response.ts';
import { createSamplers } from './sampling/plan.ts';
import type { Group } from './sequence.ts';
import { StopStrings } from './stop-strings.ts';
import { ChatCompletionStream, toChunks } from './stream.ts';
import type { StopRules } from './text-out.ts';
import type { Tokenizer } from './tokenizer.ts';

/** What an answer needs beside the request and the model. */
export type AnswerContext = {
  readonly signal: AbortSignal | undefined;
  readonly processedLogprobs: boolean;
  /** Running number of the request within its runtime. */
  readonly arrival: number;
};

/** Answers a request. Everything that can be wrong with it shows before the first token. */
export async function answer(
  model: ServedModel,
  request: ValidChatRequest,
  context: AnswerContext,
): Promise<ChatCompletion | ChatCompletionStream> {
  const { tokenizer, template, contextSize, engine } = model;
  const created = Math.floor(Date.now() / 1000);
  if (!template)
    throw new OnpolicyError('TEMPLATE_FAILED', `${model.path} holds no chat template: give one with the option chatTemplate`, {
      param: 'chat_template',
    });
  const prompt = await buildPrompt(request, { template, tokenizer, contextSize });
  const rules = stopRules(request, tokenizer, prompt.maxTokens);
  const seed = request.seed ?? randomSeed();
  const samplers = await createSamplers(request, prompt.ids, seed, { ...context, tokenizer, defaults: model.defaults, rules });
  const group: Group = {
    prompt: prompt.ids,
    cacheKey: request.cache_salt ?? '',
    priority: request.priority,
    arrival: context.arrival,
  };
  const completion = new Completion({
    engine,
    tokenizer,
    group,
    samplers,
    rules,
    wantsLogprobs: request.logprobs,
    tokensAsIds: request.return_tokens_as_token_ids,
    signal: context.signal,
  });
  const header: AnswerHeader = {
    id: `chatcmpl-${request.request_id ?? randomUUID()}`,
    created,
    model: request.model ?? model.path,
    systemFingerprint: model.fingerprint,
    role: 'assistant',
    promptIds: prompt.ids,
    returnTokenIds: request.return_token_ids,
    wantsLogprobs: request.logprobs,
  };
  if (!request.stream) {
    await completion.done();
    return toResponse(header, completion);
  }
  const { include_usage, continuous_usage_stats } = request.stream_options;
  return new ChatCompletionStream(
    toChunks(header, completion, { atEnd: include_usage, inEveryChunk: include_usage && continuous_usage_stats }),
    () => completion.stop(new OnpolicyError('ABORTED', 'the stream was aborted')),
  );
}

function stopRules(request: ValidChatRequest, tokenizer: Tokenizer, maxTokens: number): StopRules {
  return {
    stops: request.stop.length > 0 ? new StopStrings(request.stop) : null,
    stopIds: new Set(request.stop_token_ids),
    endIds: tokenizer.endIds,
    eosId: tokenizer.eosId,
    ignoreEos: request.ignore_eos,
    minTokens: request.min_tokens,
    maxTokens,
    includeStop: request.include_stop_str_in_output,
    skipSpecial: request.skip_special_tokens,
  };
}

function randomSeed(): bigint {
  return randomBytes(8).readBigUInt64LE() >> 11n; // exact as a JavaScript number
}
