/** Requests of the messages API -> messages or events, of any service that answers chat completions. */
import { AnswerStream, type ChatCompletionStream } from '../../answer/index.ts';
import { OnpolicyError } from '../../errors.ts';
import {
  type ChatCompletion,
  type ChatCompletionRequest,
  checkRequest,
  type MessageCountRequest,
  type MessageRequest,
  type MessageResponse,
  type MessageStreamEvent,
  type MessageTokensCount,
  type ValidationOptions,
} from '../../protocol/index.ts';
import type { CallOptions, Completions } from '../../service.ts';
import type { Renders } from '../renders.ts';
import { toChat } from './to-chat.ts';
import { toEvents } from './to-events.ts';
import { toMessage } from './to-message.ts';

/** The events of one message. */
export class MessageStream extends AnswerStream<MessageStreamEvent> {}

/** Answers requests of Anthropic's messages API. */
export interface CreateMessage {
  /**
   * As a stream of events.
   * @throws OnpolicyError `INVALID_REQUEST` for bad fields, before anything runs; further codes in `ErrorCode`
   */
  (request: MessageRequest & { stream: true }, options?: CallOptions): Promise<MessageStream>;
  /** As a whole. */
  (request: MessageRequest & { stream?: false | null }, options?: CallOptions): Promise<MessageResponse>;
  /** As the request's `stream` says. */
  (request: MessageRequest, options?: CallOptions): Promise<MessageResponse | MessageStream>;
}

/** Answers a request by a service. */
export async function createMessage(
  service: Pick<Completions, 'createCompletion'>,
  input: unknown,
  options: CallOptions = {},
  validation: ValidationOptions = {},
): Promise<MessageResponse | MessageStream> {
  const request = checkRequest('MessageRequest', input, validation);
  const { chat, paths } = toChat(request);
  const usage = { include_usage: true, continuous_usage_stats: true };
  const asked = request.stream ? { ...chat, stream: true, stream_options: usage } : chat;
  const { answer, isFull } = await paths.run(() => fill(service, asked, options));
  if (!(Symbol.asyncIterator in answer)) return toMessage(answer, isFull);
  return new MessageStream(toEvents(answer, isFull), () => answer.abort());
}

/** Counts the tokens of a request's prompt. */
export async function countMessageTokens(
  service: Renders,
  input: unknown,
  options: CallOptions = {},
  validation: ValidationOptions = {},
): Promise<MessageTokensCount> {
  const request: MessageCountRequest = checkRequest('MessageCountRequest', input, validation);
  const { chat, paths } = toChat(request);
  const { max_completion_tokens: _, ...counted } = chat;
  const { count } = await paths.run(() => service.renderPrompt(counted, options));
  return { input_tokens: count };
}

/** Answers with as many tokens as asked for, or as the context has left: `isFull`. */
async function fill(
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
