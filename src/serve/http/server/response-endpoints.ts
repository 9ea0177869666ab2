/** Requests of the responses API -> responses, events, and stored responses. */
import { errorAt } from '../../../errors.ts';
import { fault, throwFaults } from '../../../protocol/index.ts';
import { type OfBody, ResponseStream, responsesOf } from '../../wires/index.ts';
import { allows } from './auth.ts';
import { type EndpointHandler, listQuery, type RequestContext } from './context.ts';
import { readConversation } from './conversation.ts';
import { responseEvents } from './event-stream.ts';
import { answerResponse } from './stream-response.ts';
import { json, type ServedResponse } from './wire.ts';

/** `POST /v1/responses`, and the endpoints below it that take the same body: counting its tokens and compacting it. */
export function askResponses(what: 'answer' | 'countInputTokens' | 'compact'): EndpointHandler {
  return async (context) => {
    const { service, call, validation } = context;
    const ask: OfBody<object> = responsesOf(service)[what];
    const answer = await ask(await readConversation(context, 'input'), call, validation, viewerOf(context));
    const kept =
      answer instanceof ResponseStream ? context.streams.keepResponse(answer, call.clientKey) : answer;
    return answerResponse(kept, context, responseEvents());
  };
}

/** `GET /v1/responses/{id}`. With `stream=true` it sends the events of the response, from behind `starting_after`. */
export async function retrieveResponse(context: RequestContext): Promise<ServedResponse> {
  const { service, id, url } = context;
  const viewer = viewerOf(context);
  const { stream, starting_after: after } = Object.fromEntries(url.searchParams);
  if (stream !== 'true') return json(await responsesOf(service).retrieve(id, viewer));
  if (after !== undefined && !/^\d{1,9}$/.test(after))
    throwFaults([fault(['starting_after'], 'type', 'the number of an event', after)]);
  const events = responsesOf(service).replay(id, after === undefined ? 0 : Number(after) + 1, viewer);
  return answerResponse(events, { ...context, charge: () => {} }, responseEvents());
}

/** `POST /v1/responses/{id}/cancel`: ends a response that is being streamed to the same client. */
export async function cancelResponse(context: RequestContext): Promise<ServedResponse> {
  const { service, id, call, streams } = context;
  const response = streams.cancelResponse(id, call.clientKey);
  if (response) return json({ ...response, status: 'cancelled' });
  const { status } = await responsesOf(service).retrieve(id, viewerOf(context));
  throw errorAt(
    'id',
    'INVALID_REQUEST',
    `expected a response that is being streamed, got one that is ${status}`,
  );
}

/** `DELETE /v1/responses/{id}`. */
export async function deleteResponse(context: RequestContext): Promise<ServedResponse> {
  const { service, id } = context;
  return json(await responsesOf(service).delete(id, viewerOf(context)));
}

/** `GET /v1/responses/{id}/input_items`. */
export async function listInputItems(context: RequestContext): Promise<ServedResponse> {
  const { service, id } = context;
  return json(await responsesOf(service).inputItems(id, listQuery(context), viewerOf(context)));
}

/** Returns the key of the client whose stored responses a request may read. Null allows all of them. */
function viewerOf({ call, scopes }: RequestContext): string | null {
  return allows(scopes, ['admin']) ? null : call.clientKey;
}
