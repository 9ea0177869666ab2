/** A request for embeddings -> their vectors. */
import { innerOf } from '../../checked-service.ts';
import { checkEmbeddingRequest } from '../../protocol/index.ts';
import { readJson } from './body.ts';
import { type RequestContext, tooMany, unsupported } from './context.ts';
import { requireModel } from './model-access.ts';
import { json, type WireResponse } from './wire.ts';

/** `POST /v1/embeddings`. */
export async function createEmbeddings(context: RequestContext): Promise<WireResponse> {
  const { request, settings, service, validation, call, charge } = context;
  const body = await readJson(request, settings);
  const { input } = (body ?? {}) as { input?: unknown };
  if (Array.isArray(input) && typeof input[0] !== 'number' && input.length > settings.maxInputs)
    throw tooMany('input', input.length, settings.maxInputs);
  const checked = checkEmbeddingRequest(body, validation);
  requireModel(context, checked);
  const { embed } = innerOf(service);
  if (!embed) throw unsupported('embeddings');
  const response = await embed(checked, call);
  charge(response.usage.total_tokens);
  return json(response);
}
