/** The body of a request for an answer -> the most tokens that it may use, estimated before its model reads it. */

import type { RequestContext } from './context.ts';
import type { Endpoint } from './endpoint.ts';
import { namedModels } from './model-access.ts';

/** Characters of a prompt that count as one token. The count at the end of the request corrects the estimate. */
const CHARACTERS_PER_TOKEN = 4;
/** Tokens that are counted for the marks around a message. */
const TOKENS_PER_LIST_ITEM = 4;

type Fields = Readonly<Record<string, unknown>>;

/** Returns the most tokens that a request may use. `contextSize`: most tokens of a prompt and its answer; infinity if unknown. */
export function tokenNeed(
  { isAnswered }: Pick<Endpoint, 'isAnswered'>,
  body: unknown,
  contextSize: number,
): number {
  if (typeof body !== 'object' || body === null) return 0;
  const { messages, prompt, input, system, instructions, tools, ...rest } = body as Fields;
  const { documents, query, text_1, text_2, tokens, token_ids, questions } = rest;
  const { input_prefix, input_suffix } = rest;
  const read = [
    messages,
    prompt,
    input,
    system,
    instructions,
    tools,
    documents,
    query,
    text_1,
    text_2,
    tokens,
    token_ids,
    input_prefix,
    input_suffix,
  ];
  const ofEach = read.reduce<number>((sum, value) => sum + readTokens(value), 0);
  // The input of a decision is part of the prompt of each question.
  const prompts = Math.max(1, typeof questions === 'object' && questions ? Object.keys(questions).length : 1);
  const ofPrompt = Math.ceil(ofEach * prompts + readTokens(questions));
  return ofPrompt + (isAnswered ? answerTokens(body as Fields, contextSize - ofPrompt) : 0);
}

/** Returns the most tokens that a request may use. Reads only the cards of models that every token may use. */
export async function needOf(
  endpoint: Endpoint,
  body: unknown,
  context: Pick<RequestContext, 'service' | 'settings'>,
): Promise<number> {
  const { model } = (body ?? {}) as { model?: unknown };
  const isDefault = model == null || model === '';
  const isNamed = isDefault || namedModels(context).includes(model as string);
  const card = isNamed ? await context.service.modelCard?.(isDefault ? null : (model as string)) : null;
  return tokenNeed(endpoint, body, card?.contextSize ?? Number.POSITIVE_INFINITY);
}

function answerTokens(body: Fields, room: number): number {
  const { prompt, messages, best_of, options, sampling_params } = body;
  const { num_predict } = (options ?? {}) as Fields;
  const params = (sampling_params ?? {}) as Fields;
  const n = body['n'] ?? params['n'];
  const most =
    body['max_completion_tokens'] ??
    body['max_tokens'] ??
    body['max_output_tokens'] ??
    body['n_predict'] ??
    params['max_tokens'] ??
    num_predict;
  const isMany = Array.isArray(prompt) && typeof prompt[0] !== 'number';
  const hasChats = Array.isArray(messages) && Array.isArray(messages[0]);
  const prompts = isMany ? prompt.length : hasChats ? messages.length : 1;
  const choices = Math.max(countOf(n), countOf(best_of));
  const ofOne = typeof most === 'number' && most >= 0 ? Math.min(most, room) : room;
  return Math.max(0, ofOne) * choices * prompts;
}

function countOf(value: unknown): number {
  return typeof value === 'number' && value > 1 ? value : 1;
}

/** Estimates the tokens of texts. Token ids count one each. */
function readTokens(value: unknown): number {
  if (typeof value === 'string') return value.length / CHARACTERS_PER_TOKEN;
  if (typeof value === 'number') return 1;
  if (typeof value !== 'object' || value === null) return 0;
  if (Array.isArray(value) && typeof value[0] === 'number') return value.length;
  let sum = Array.isArray(value) ? value.length * TOKENS_PER_LIST_ITEM : 0;
  for (const item of Object.values(value)) sum += readTokens(item);
  return sum;
}
