/** A chat completion request of an API that limits answers to the room in the context -> its answer. */

import { OnpolicyError } from '../../errors.ts';
import { type ChatCompletionRequest, checkTranslatedChat } from '../../protocol/index.ts';
import type { CallOptions, ChatAnswer, Completions } from '../../protocol/service/index.ts';
import { callChecked } from '../checked-calls.ts';

/**
 * Answers with the requested number of tokens, or with the rest of the context if that is less. `isTranslated`: the request was just made
 * from a checked one, so it is valid for the schema of a chat.
 */
export async function answerWithin(
  service: Pick<Completions, 'createCompletion'>,
  chat: ChatCompletionRequest,
  options: CallOptions,
  isTranslated = false,
): Promise<ChatAnswer> {
  const shortening = { ...options, shortenAnswer: true };
  try {
    return await (isTranslated
      ? (callChecked(
          service,
          'createCompletion',
          checkTranslatedChat(chat),
          shortening,
        ) as Promise<ChatAnswer>)
      : service.createCompletion(chat, shortening));
  } catch (error) {
    // A server of another make knows no such option: it is asked again, without a limit.
    const isTooMuch = error instanceof OnpolicyError && error.code === 'CONTEXT_OVERFLOW';
    if (!isTooMuch || error.param !== 'max_completion_tokens') throw error;
    const { max_completion_tokens: _, ...rest } = chat;
    return await service.createCompletion(rest, options);
  }
}
