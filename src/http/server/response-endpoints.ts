/** Requests of the responses API -> responses, events, and what is stored of them. */
import { fault, throwFaults } from '../../protocol/index.ts';
import { type OfBody, responsesOf } from '../../wires/index.ts';
import { type EndpointHandler, listQuery, type RequestContext } from './context.ts';
import { readConversation } from './conversation.ts';
import { responseEvents } from './event-stream.ts';
import { answerResponse } from './stream-response.ts';
import { json, type WireResponse } from './wire.ts';

/** `POST /v1/responses`, and below it what else is asked with such a request: how many tokens it has, or to compact it. */
export function askResponses(what: 'answer' | 'countInputTokens' | 'compact'): EndpointHandler {
  return async (context) => {
    const { service, call, validation } = context;
    const ask: OfBody<object> = responsesOf(service)[what];
    const answer = await ask(await readConversation(context, 'input'), call, validation);
    return answerResponse(answer, context, responseEvents());
  };
}

/** `GET /v1/responses/{id}`; with `stream=true` the events that it had, those after `starting_after`. */
export async function retrieveResponse(context: RequestContext): Promise<WireResponse> {
  const { service, id, request } = context;
  const { stream, starting_after: after } = Object.fromEntries(request.url.searchParams);
  if (stream !== 'true') return json(await responsesOf(service).retrieve(id));
  if (after !== undefined && !/^\d{1,9}$/.test(after))
    throwFaults([fault(['starting_after'], 'type', 'the number of an event', after)]);
  const events = responsesOf(service).replay(id, after === undefined ? 0 : Number(after) + 1);
  return answerResponse(events, { ...context, charge: () => {} }, responseEvents());
}

/** `DELETE /v1/responses/{id}`. */
export async function deleteResponse({ service, id }: RequestContext): Promise<WireResponse> {
  return json(await responsesOf(service).delete(id));
}

/** `GET /v1/responses/{id}/input_items`. */
export async function listInputItems(context: RequestContext): Promise<WireResponse> {
  const { service, id } = context;
  return json(await responsesOf(service).inputItems(id, listQuery(context)));
}
