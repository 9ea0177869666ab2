/** The body of a request with a conversation -> the same, within the limits of the server. */
import { isTraceId } from '../../protocol/index.ts';
import { readJson } from './body.ts';
import { type RequestContext, tooMany } from './context.ts';
import { requireModelAndAdapters } from './model-access.ts';

/** `field`: where its messages are. */
export async function readConversation(
  context: RequestContext,
  field: 'input' | 'messages',
): Promise<unknown> {
  const { request, settings } = context;
  const body = await readJson(request, settings);
  const {
    [field]: messages,
    model,
    adapters,
    speculation,
    request_id,
  } = (body ?? {}) as Record<string, unknown>;
  const count = Array.isArray(messages) ? messages.length : 0;
  if (count > settings.maxMessages) throw tooMany(field, count, settings.maxMessages);
  await requireModelAndAdapters(context, { model, adapters, speculation });
  if (isTraceId(request_id)) context.setRequestId(request_id);
  return body;
}
