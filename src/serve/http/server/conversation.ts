/** The body of a request with a conversation -> the same body, checked against the limits of the server. */
import { limitList, type RequestContext } from './context.ts';
import { requireModelAndAdapters } from './model-access.ts';

/** Reads a body and applies the limits on messages. `field`: the field that has its messages. */
export async function readConversation(
  context: RequestContext,
  field: 'input' | 'messages',
): Promise<unknown> {
  const body = await context.body();
  limitList(body, field, context.settings.maxMessages);
  await requireModelAndAdapters(context, body ?? {});
  return body;
}
