/** A request for embeddings -> their vectors. */
import { afterDoor, checkEmbeddingRequest } from '../../protocol/index.ts';
import { readJson } from './body.ts';
import { type RequestContext, tooMany, unsupported } from './context.ts';
import { requireModel } from './model-access.ts';
import { json, type WireResponse } from './wire.ts';

/** `POST /v1/embeddings`. */
export async function createEmbeddings(context: RequestContext): Promise<WireResponse> {
  const { request, settings, service, door, call, charge } = context;
  const body = await readJson(request, settings);
  const { input } = (body ?? {}) as { input?: unknown };
  if (Array.isArray(input) && typeof input[0] !== 'number' && input.length > settings.maxInputs)
    throw tooMany('input', input.length, settings.maxInputs);
  const checked = checkEmbeddingRequest(body, door);
  requireModel(context, checked);
  if (!service.createEmbeddings) throw unsupported('embeddings');
  const response = await afterDoor(service.createEmbeddings).call(service, checked, call);
  charge(response.usage.total_tokens);
  return json(response);
}
