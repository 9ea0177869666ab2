/** Requests of the responses API -> responses, events, and what is stored of them. */
import { isTraceId } from '../../protocol/index.ts';
import { responsesOf } from '../../wires/index.ts';
import { readJson } from './body.ts';
import { type RequestContext, tooMany } from './context.ts';
import { responseEvents } from './event-stream.ts';
import { requireModelAndAdapters } from './model-access.ts';
import { answerResponse } from './stream-response.ts';
import { json, type WireResponse } from './wire.ts';

/** `POST /v1/responses`. */
export async function createResponse(context: RequestContext): Promise<WireResponse> {
  const { request, service, settings, call, validation } = context;
  const body = await readJson(request, settings);
  const { input, model, adapters, speculation, request_id } = (body ?? {}) as Record<string, unknown>;
  const count = Array.isArray(input) ? input.length : 0;
  if (count > settings.maxMessages) throw tooMany('input', count, settings.maxMessages);
  await requireModelAndAdapters(context, { model, adapters, speculation });
  if (isTraceId(request_id)) context.setRequestId(request_id);
  const answer = await responsesOf(service).answer(body, call, validation);
  return answerResponse(answer, context, responseEvents());
}

/** `GET /v1/responses/{id}`. */
export async function retrieveResponse({ service, id }: RequestContext): Promise<WireResponse> {
  return json(await responsesOf(service).retrieve(id));
}

/** `DELETE /v1/responses/{id}`. */
export async function deleteResponse({ service, id }: RequestContext): Promise<WireResponse> {
  return json(await responsesOf(service).delete(id));
}

/** `GET /v1/responses/{id}/input_items`. */
export async function listInputItems({ service, id }: RequestContext): Promise<WireResponse> {
  return json(await responsesOf(service).inputItems(id));
}
