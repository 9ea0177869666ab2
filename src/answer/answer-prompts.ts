/** Several prompts of one request -> an answer to each, at the same time. */
import { setMaxListeners } from 'node:events';
import type { ModelLease } from '../models/index.ts';
import type { ChatCompletion, ValidChatRequest } from '../protocol/index.ts';
import { type AnswerContext, answer } from './answer.ts';
import type { TokenPrompt } from './prompt.ts';
import type { ChatCompletionStream } from './stream.ts';

/** Answers all prompts. When one fails, the others end too. */
export async function answerPrompts(
  leased: Pick<ModelLease, 'model' | 'adapter'>,
  chat: ValidChatRequest,
  prompts: readonly TokenPrompt[],
  context: AnswerContext,
): Promise<(ChatCompletion | ChatCompletionStream)[]> {
  const scopes = context.leases.share(prompts.length);
  const end = new AbortController();
  const signal = context.signal ? AbortSignal.any([context.signal, end.signal]) : end.signal;
  setMaxListeners(0, signal); // every answer listens to it
  const asked = prompts.map((prompt, at) =>
    answer(leased, chat, { ...context, signal, leases: scopes[at]!, prompt }),
  );
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
