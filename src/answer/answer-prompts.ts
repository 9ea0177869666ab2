/** Several prompts of one request -> an answer to each, at the same time. */
import { setMaxListeners } from 'node:events';
import type { ModelLease } from '../models/index.ts';
import type { ChatCompletion, ValidChatRequest } from '../protocol/index.ts';
import type { ChatCompletionStream } from '../protocol/service/index.ts';
import { type AnswerContext, answer } from './answer.ts';
import type { TokenPrompt } from './prompt.ts';

/** One answer of a request. If `prompt` is absent, the messages of the chat are answered. */
export type Ask = { readonly chat: ValidChatRequest; readonly prompt?: TokenPrompt };

/** Answers all prompts. If one fails, the others are aborted and its error is thrown. */
export async function answerAll(
  leased: Pick<ModelLease, 'model' | 'adapter'>,
  asks: readonly Ask[],
  context: AnswerContext,
): Promise<(ChatCompletion | ChatCompletionStream)[]> {
  if (asks.length === 1) return [await answerOne(leased, asks[0]!, context)];
  const scopes = context.leases.share(asks.length);
  const end = new AbortController();
  const signal = context.signal ? AbortSignal.any([context.signal, end.signal]) : end.signal;
  setMaxListeners(0, signal); // every answer listens to it
  const asked = asks.map((ask, at) => answerOne(leased, ask, { ...context, signal, leases: scopes[at]! }));
  try {
    return await Promise.all(asked);
  } catch (error) {
    end.abort();
    for (const one of await Promise.allSettled(asked))
      if (one.status === 'fulfilled' && Symbol.asyncIterator in one.value) one.value.abort();
    for (const scope of scopes) scope[Symbol.dispose]();
    throw error;
  }
}

function answerOne(
  leased: Pick<ModelLease, 'model' | 'adapter'>,
  { chat, prompt }: Ask,
  context: AnswerContext,
): Promise<ChatCompletion | ChatCompletionStream> {
  return answer(leased, chat, prompt ? { ...context, prompt } : context);
}
