/** Tokens that were generated elsewhere -> the answer that a chat completion request would have got with them. */
import type { SampledRows } from '../engine/native/index.ts';
import type { Tokenizer } from '../engine/tokenizer/index.ts';
import type { ModelLease } from '../models/index.ts';
import {
  type ChatCompletion,
  checkVocabulary,
  type GeneratedTokens,
  type Logprob,
  throwFaults,
  tokenIdFaults,
  type ValidChatRequest,
  type ValidParseAnswer,
} from '../protocol/index.ts';
import { toLogprob } from '../sampling/index.ts';
import { PLAIN_TEXT } from '../template/chat-format/index.ts';
import { headerOf } from './answer.ts';
import { reportRules } from './beams.ts';
import { Choice, type ChoiceOptions } from './choice.ts';
import { createMatchers } from './constraint.ts';
import { openChat } from './open-request.ts';
import { planAnswer } from './plan-answer.ts';
import { textIdsOf } from './prompt.ts';
import { toResponse } from './response.ts';

type Generated = GeneratedTokens['choices'][number];

/** Reads tokens as the same request's own answer would have been read: a stop of the request ends them, also where more follow. */
export async function parseAnswer(
  { model, adapter }: Pick<ModelLease, 'model' | 'adapter'>,
  { answer, chat: request, hasChat, promptTokens }: ValidParseAnswer,
  signal: AbortSignal | undefined,
): Promise<ChatCompletion> {
  const { tokenizer } = model;
  const created = answer.created ?? Math.floor(Date.now() / 1000);
  requireKnownTokens(answer, tokenizer);
  checkVocabulary(request, tokenizer.vocabSize);
  const opened = hasChat
    ? await openChat(model, request, signal)
    : { format: PLAIN_TEXT, prompt: { ...NO_PROMPT, maxTokens: model.contextSize } };
  const { prompt } = opened;
  const { message, rules, ...planned } = planAnswer(request, tokenizer, opened, prompt.maxTokens);
  const { warnings } = await createMatchers(planned, 0, model.loaded, signal);
  const options: ChoiceOptions = {
    rules: request.use_beam_search ? reportRules(rules) : rules,
    message,
    tokenizer,
    wantsLogprobs: false, // the log-probabilities are given
    repetition: request.repetition_detection,
    tokensAsIds: request.return_tokens_as_token_ids,
    onChange: () => {},
  };
  const choices = answer.choices.map((given, index) => readChoice(given, new Choice(index, options)));
  for (const [i, { logprobs }] of answer.choices.entries())
    if (logprobs) addLogprobs(choices[i]!, logprobs.content, request, tokenizer);
  const textIds = textIdsOf(prompt);
  const header = headerOf({ model, adapter, request, prompt, textIds, drawnSeed: null, warnings }, created);
  const { usage, request_id } = answer;
  const counts = usage?.completion_tokens_details;
  return toResponse(
    {
      ...header,
      ...(request_id ? { id: `chatcmpl-${request_id}` } : {}),
      promptTokens: promptTokens ?? usage?.prompt_tokens ?? header.promptTokens,
      wantsLogprobs: answer.choices.some(({ logprobs }) => logprobs),
    },
    {
      choices,
      cachedTokens: usage?.prompt_tokens_details?.cached_tokens ?? 0,
      usage: {
        accepted_prediction_tokens: counts?.accepted_prediction_tokens ?? 0,
        rejected_prediction_tokens: counts?.rejected_prediction_tokens ?? 0,
      },
      readsReasoning: message.reasoning !== null,
      fields: () => ({
        prompt_logprobs: (answer.prompt_logprobs ?? null) as ChatCompletion['prompt_logprobs'],
        kv_transfer_params: answer.kv_transfer_params ?? null,
      }),
      reportOf: () => ({}),
    },
  );
}

/** The prompt of an answer whose chat request is not known. */
const NO_PROMPT = { text: '', ids: new Int32Array(0), media: [], shift: null };

/** Rows of tokens that were not sampled here. */
const NO_ROWS: SampledRows = {
  status: new Uint8Array(0),
  tokens: new Int32Array(0),
  isFinal: new Uint8Array(0),
  logprobs: new Float32Array(0),
  ranks: new Int32Array(0),
  topOffsets: new Int32Array(1),
  topIds: new Int32Array(0),
  topLogprobs: new Float32Array(0),
};

function requireKnownTokens({ choices }: GeneratedTokens, { vocabSize }: Tokenizer): void {
  throwFaults(
    choices.flatMap(({ token_ids }, i) =>
      tokenIdFaults(['generate_response', 'choices', String(i), 'token_ids'], token_ids, vocabSize),
    ),
  );
}

/** Feeds the tokens to a choice until one ends it. If none does, it ends as it did where the tokens were generated. */
function readChoice({ token_ids, finish_reason, stop_reason }: Generated, choice: Choice): Choice {
  for (const id of token_ids) if (choice.onToken(id, NO_ROWS, 0, false)) break;
  if (!choice.isEnded) choice.end({ reason: finish_reason ?? 'stop', stopReason: stop_reason ?? null });
  choice.catchUp();
  return choice;
}

/** Adds the log-probabilities of the tokens that a choice has read, with as many alternatives as the request asks for. */
function addLogprobs(
  { tokenIds, logprobs }: Choice,
  given: NonNullable<Generated['logprobs']>['content'],
  request: ValidChatRequest,
  tokenizer: Tokenizer,
): void {
  const most = alternativesOf(request);
  const show = ({ token_id, logprob }: { readonly token_id: number; readonly logprob: number }): Logprob =>
    toLogprob(tokenizer, token_id, logprob, request.return_tokens_as_token_ids);
  for (const entry of given.slice(0, tokenIds.length))
    logprobs.push({ ...show(entry), top_logprobs: (entry.top_logprobs ?? []).slice(0, most).map(show) });
}

/** Returns how many alternatives each token of an answer has. A request that asks for none gets all that are given. */
function alternativesOf({ logprobs, logprob_token_ids: ids, top_logprobs: count }: ValidChatRequest): number {
  if (!logprobs) return Number.POSITIVE_INFINITY;
  if (ids && ids.length > 0) return new Set(ids).size;
  return count === -1 ? Number.POSITIVE_INFINITY : count;
}
