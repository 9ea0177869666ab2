/** A chat completion request of a wire that limits answers to the room in the context -> its answer, and whether it has that room only. */
import type { ChatCompletionStream } from '../answer/index.ts';
import { OnpolicyError } from '../errors.ts';
import type { ChatCompletion, ChatCompletionRequest } from '../protocol/index.ts';
import type { CallOptions, Completions } from '../service.ts';

/** Answers with as many tokens as asked for, or as the context has left: `isFull`. */
export async function answerWithin(
  service: Pick<Completions, 'createCompletion'>,
  chat: ChatCompletionRequest,
  options: CallOptions,
): Promise<{ answer: ChatCompletion | ChatCompletionStream; isFull: boolean }> {
  try {
    return { answer: await service.createCompletion(chat, options), isFull: false };
  } catch (error) {
    const isTooMuch = error instanceof OnpolicyError && error.code === 'CONTEXT_OVERFLOW';
    if (!isTooMuch || error.param !== 'max_completion_tokens') throw error;
    const { max_completion_tokens: _, ...rest } = chat;
    return { answer: await service.createCompletion(rest, options), isFull: true };
  }
}
