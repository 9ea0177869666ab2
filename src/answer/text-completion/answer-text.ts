/** A valid text completion request on a loaded model -> its answer. Each prompt is a request of the one engine. */
import { randomUUID } from 'node:crypto';
import type { ModelLease } from '../../models/index.ts';
import {
  type ChatCompletion,
  type ChatCompletionChoice,
  type ChatCompletionChunk,
  sumUsage,
  type TextCompletion,
  type TextCompletionChoice,
  type TextCompletionChunk,
  type Usage,
  type ValidTextCompletionRequest,
} from '../../protocol/index.ts';
import { type ChatCompletionStream, TextCompletionStream } from '../../protocol/service/index.ts';
import type { AnswerContext } from '../answer.ts';
import { answerAll } from '../answer-prompts.ts';
import { TextOffsets } from './logprobs.ts';
import { merge } from './merge.ts';
import { encodePrompt } from './prompts.ts';
import { type ReportedTimes, streamText, timesOf } from './stream-text.ts';
import { TextParts } from './text-parts.ts';

type Leased = Pick<ModelLease, 'model' | 'adapter'>;

/** Answers a request. All validation errors are thrown before the first token is generated. */
export async function answerText(
  leased: Leased,
  request: ValidTextCompletionRequest,
  context: AnswerContext,
): Promise<TextCompletion | TextCompletionStream> {
  const { chat, prompts: given } = request;
  const { tokenizer, contextSize, name } = leased.model;
  const id = chat.request_id ?? randomUUID();
  const room = { tokenizer, contextSize, signal: context.signal };
  const prompts = await Promise.all(given.map((one) => encodePrompt(one, request, room)));
  const named = { ...request, chat: { ...chat, request_id: id } };
  const answers = await answerAll(
    leased,
    prompts.map((prompt) => ({ chat: named.chat, prompt })),
    context,
  );
  const header = {
    id: `cmpl-${id}`,
    object: 'text_completion' as const,
    created: Math.floor(Date.now() / 1000),
    model: chat.model ?? name,
  };
  const contexts = prompts.map((prompt, at) => ({ request, tokenizer, given: given[at]!, prompt }));
  if (!chat.stream) {
    const whole = answers as ChatCompletion[];
    const choices = whole.flatMap((one, at) => {
      const parts = new TextParts(contexts[at]!, one.prompt_token_ids ?? [], one.prompt_logprobs ?? []);
      return bestChoices(one.choices, request.n).map((choice) => toChoice(parts, choice));
    });
    return {
      ...header,
      choices: choices.map((choice, index) => ({ ...choice, index })),
      system_fingerprint: whole[0]!.system_fingerprint,
      seed: whole.length === 1 ? whole[0]!.seed : null,
      usage: usageOf(
        whole.map(({ usage }) => usage),
        request,
      ),
      kv_transfer_params: whole[0]!.kv_transfer_params,
      ...timesOf(whole[0]!),
      ...(whole[0]!.warnings ? { warnings: whole[0]!.warnings } : {}),
    };
  }
  const streams = answers as ChatCompletionStream[];
  const usages: Usage[] = [];
  let times: ReportedTimes = {};
  const onEnd = (chunk: ChatCompletionChunk): void => {
    if (chunk.usage) usages.push(chunk.usage);
    times = timesOf(chunk);
  };
  const sources = streams.map((stream, at) =>
    streamText(stream, { ...contexts[at]!, header, onEnd, firstIndex: at * request.n }),
  );
  const last = (): TextCompletionChunk[] =>
    usages.length === 0 ? [] : [{ ...header, choices: [], usage: usageOf(usages, request), ...times }];
  return new TextCompletionStream(merge(sources, last), () => {
    for (const stream of streams) stream.abort();
  });
}

/**
 * Returns the `n` choices with the highest mean log-probability per token, best first. If there are no more than `n`, returns all in their
 * order.
 */
function bestChoices(choices: readonly ChatCompletionChoice[], n: number): readonly ChatCompletionChoice[] {
  if (choices.length <= n) return choices;
  const mean = ({ logprobs }: ChatCompletionChoice): number => {
    const entries = logprobs?.content ?? [];
    return entries.reduce((sum, { logprob }) => sum + logprob, 0) / Math.max(1, entries.length);
  };
  return choices.toSorted((one, other) => mean(other) - mean(one)).slice(0, n);
}

function toChoice(parts: TextParts, choice: ChatCompletionChoice): Omit<TextCompletionChoice, 'index'> {
  const { text, logprobs, ids } = parts.of(
    {
      text: choice.message.content ?? '',
      entries: choice.logprobs?.content ?? [],
      ids: choice.token_ids ?? [],
    },
    { offsets: new TextOffsets(), previous: -1, isFirst: true },
  );
  return {
    text,
    logprobs,
    finish_reason: parts.finishOf(choice.finish_reason),
    stop_reason: parts.isEmpty ? null : choice.stop_reason,
    prompt_logprobs: parts.shownPromptScores,
    prompt_token_ids: parts.shownPromptIds,
    token_ids: ids,
    ...(choice.context_shift ? { context_shift: choice.context_shift } : {}),
  };
}

/** Returns the sum of the prompts' token counts. Completion tokens count 0 if the request wants no text. */
function usageOf(usages: readonly Usage[], { isEmpty }: ValidTextCompletionRequest): Usage {
  const usage = sumUsage(usages);
  return isEmpty ? { ...usage, total_tokens: usage.prompt_tokens, completion_tokens: 0 } : usage;
}
