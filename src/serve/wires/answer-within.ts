/**
 * A chat completion request of an API that limits answers to the room in the context -> its answer, and whether that room is its only
 * limit.
 */

import { OnpolicyError } from '../../errors.ts';
import { type ChatCompletionRequest, checkTranslatedChat } from '../../protocol/index.ts';
import type { CallOptions, ChatAnswer, Completions } from '../../protocol/service/index.ts';
import { callChecked } from '../checked-calls.ts';

/**
 * Answers with the requested number of tokens, or with the rest of the context if that is less: `isFull`. `isTranslated`: the request was
 * just made from a checked one, so it is valid for the schema of a chat.
 */
export async function answerWithin(
  service: Pick<Completions, 'createCompletion'>,
  chat: ChatCompletionRequest,
  options: CallOptions,
  isTranslated = false,
): Promise<{ answer: ChatAnswer; isFull: boolean }> {
  try {
    const asked = isTranslated
      ? (callChecked(service, 'createCompletion', checkTranslatedChat(chat), options) as Promise<ChatAnswer>)
      : service.createCompletion(chat, options);
    return { answer: await asked, isFull: false };
  } catch (error) {
    const isTooMuch = error instanceof OnpolicyError && error.code === 'CONTEXT_OVERFLOW';
    if (!isTooMuch || error.param !== 'max_completion_tokens') throw error;
    const { max_completion_tokens: _, ...rest } = chat;
    return { answer: await service.createCompletion(rest, options), isFull: true };
  }
}
