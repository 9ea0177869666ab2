/** Requests of the messages API -> messages, events, or the count of their tokens. */
import { isTraceId } from '../../protocol/index.ts';
import { countMessageTokens, createMessage as create } from '../../wires/index.ts';
import { readJson } from './body.ts';
import { type RequestContext, tooMany, unsupported } from './context.ts';
import { MESSAGE_EVENTS } from './event-stream.ts';
import { requireModelAndAdapters } from './model-access.ts';
import { answerResponse } from './stream-response.ts';
import { json, type WireResponse } from './wire.ts';

/** `POST /v1/messages`. */
export async function createMessage(context: RequestContext): Promise<WireResponse> {
  const { service, call, validation } = context;
  const body = await readBody(context);
  const answer = await create(service, body, call, validation);
  return answerResponse(answer, context, MESSAGE_EVENTS);
}

/** `POST /v1/messages/count_tokens`. */
export async function countTokens(context: RequestContext): Promise<WireResponse> {
  const { service, call, validation } = context;
  const body = await readBody(context);
  const { renderPrompt } = service;
  if (!renderPrompt) throw unsupported('prompts');
  const renders = { renderPrompt: renderPrompt.bind(service) };
  return json(await countMessageTokens(renders, body, call, validation));
}

/** Reads a body, within the limits of the server. */
async function readBody(context: RequestContext): Promise<unknown> {
  const { request, settings } = context;
  const body = await readJson(request, settings);
  const { messages, model, adapters, speculation, request_id } = (body ?? {}) as Record<string, unknown>;
  const count = Array.isArray(messages) ? messages.length : 0;
  if (count > settings.maxMessages) throw tooMany('messages', count, settings.maxMessages);
  await requireModelAndAdapters(context, { model, adapters, speculation });
  if (isTraceId(request_id)) context.setRequestId(request_id);
  return body;
}
