/** Requests of the messages API -> messages, events, or the count of their tokens. */
import { countMessageTokens, createMessage as create } from '../../wires/index.ts';
import type { RequestContext } from './context.ts';
import { readConversation } from './conversation.ts';
import { MESSAGE_EVENTS } from './event-stream.ts';
import { answerResponse } from './stream-response.ts';
import { json, type ServedResponse } from './wire.ts';

/** `POST /v1/messages`. */
export async function createMessage(context: RequestContext): Promise<ServedResponse> {
  const { service, call, validation } = context;
  const body = await readConversation(context, 'messages');
  const answer = await create(service, body, call, validation);
  return answerResponse(answer, context, MESSAGE_EVENTS);
}

/** `POST /v1/messages/count_tokens`. */
export async function countTokens(context: RequestContext): Promise<ServedResponse> {
  const { service, call, validation } = context;
  const body = await readConversation(context, 'messages');
  return json(await countMessageTokens(service, body, call, validation));
}
