/** Requests that act on a running stream -> what they did. */
import { checkRequest } from '../../../protocol/index.ts';
import type { RequestContext } from './context.ts';
import { json, type ServedResponse } from './wire.ts';

/** `POST /v1/chat/completions/control`: ends the reasoning of a stream of the same client. */
export async function controlChat(context: RequestContext): Promise<ServedResponse> {
  const { id } = checkRequest('ChatControlBody', await context.body(), context.validation);
  const stream = context.streams.find(id, context.call.clientKey);
  if (!stream) return json({ success: false, message: 'no stream with this id is running' });
  const isReasoning = await stream.endReasoning();
  return json(isReasoning ? { success: true } : { success: false, message: 'the answer is not reasoning' });
}
