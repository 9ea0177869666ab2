/** Requests of the messages API -> messages or events, from any service that answers chat completions. */

import {
  checkRequest,
  type MessageCountRequest,
  type MessageRequest,
  type MessageResponse,
  type MessageStreamEvent,
  type MessageTokensCount,
  type ValidationOptions,
} from '../../../protocol/index.ts';
import type { Answer, CallOptions, Completions, StreamFlag } from '../../../protocol/service/index.ts';
import { AnswerStream } from '../../../protocol/service/index.ts';
import { answerWithin } from '../answer-within.ts';
import { countPrompt } from '../count-prompt.ts';
import { toChat } from './to-chat.ts';
import { toEvents } from './to-events.ts';
import { toMessage } from './to-message.ts';

/** The events of one message. */
export class MessageStream extends AnswerStream<MessageStreamEvent> {}

/**
 * Answers requests of Anthropic's messages API: with `stream: true` as a stream of events, else as a whole.
 * @throws OnpolicyError `INVALID_REQUEST` for bad fields, before anything runs; further codes in `ErrorCode`
 */
export type CreateMessage = <Flag extends StreamFlag = undefined>(
  request: MessageRequest & { stream?: Flag },
  options?: CallOptions,
) => Promise<Answer<Flag, MessageStream, MessageResponse>>;

/** Answers a request with a service. */
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
  const answer = await paths.run(() => answerWithin(service, asked, options, true));
  if (!(Symbol.asyncIterator in answer)) return toMessage(answer, request.max_tokens);
  const { events, idleEvents } = toEvents(answer, request.max_tokens);
  return new MessageStream(events, () => answer.abort(), idleEvents);
}

/** Counts the tokens of a request's prompt. */
export async function countMessageTokens(
  service: Pick<Completions, 'renderPrompt'>,
  input: unknown,
  options: CallOptions = {},
  validation: ValidationOptions = {},
): Promise<MessageTokensCount> {
  const request: MessageCountRequest = checkRequest('MessageCountRequest', input, validation);
  const { chat, paths } = toChat(request);
  return { input_tokens: await paths.run(() => countPrompt(service, chat, options)) };
}
