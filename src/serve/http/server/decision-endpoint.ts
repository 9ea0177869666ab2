/** A decision in OpenAI's form or in System One's, detected by its body -> its answers in the same form. */
import { answerSystemOne, checkSystemOne, isSystemOne } from '../../wires/index.ts';
import { limit, type RequestContext } from './context.ts';
import { methodEndpoint } from './method-endpoints.ts';
import { requireModelAndAdapters } from './model-access.ts';
import { answerResponse } from './stream-response.ts';
import type { ServedResponse } from './wire.ts';

const ofOpenai = methodEndpoint('decide');

export async function decide(context: RequestContext): Promise<ServedResponse> {
  const { body, service, call, settings, validation } = context;
  const given = await body();
  if (!isSystemOne(given)) return await ofOpenai({ ...context, body: async () => given });
  const request = checkSystemOne(given, validation);
  limit('questions', Object.keys(request.questions).length, settings.maxInputs);
  await requireModelAndAdapters(context, request);
  return answerResponse(await answerSystemOne(service, request, call), context);
}
