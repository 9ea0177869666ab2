/** Requests that compare or label texts -> their scores or labels. */
import { innerOf } from '../../checked-service.ts';
import { checkClassifyRequest, checkRerankRequest, checkScoreRequest } from '../../protocol/index.ts';
import { readJson } from './body.ts';
import { type RequestContext, tooMany, unsupported } from './context.ts';
import { requireModel } from './model-access.ts';
import { json, type WireResponse } from './wire.ts';

/** `POST /v1/rerank`. */
export async function rerank(context: RequestContext): Promise<WireResponse> {
  const request = checkRerankRequest(await readTexts(context, ['documents']), context.validation);
  requireModel(context, request);
  return await answered(context, 'rankings', innerOf(context.service).rerank?.(request, context.call));
}

/** `POST /v1/score`. */
export async function score(context: RequestContext): Promise<WireResponse> {
  const request = checkScoreRequest(await readTexts(context, ['text_1', 'text_2']), context.validation);
  requireModel(context, request);
  return await answered(context, 'scores', innerOf(context.service).score?.(request, context.call));
}

/** `POST /v1/classify`. */
export async function classify(context: RequestContext): Promise<WireResponse> {
  const request = checkClassifyRequest(await readTexts(context, ['input']), context.validation);
  requireModel(context, request);
  return await answered(context, 'labels', innerOf(context.service).classify?.(request, context.call));
}

/** A body whose lists are not too long. */
async function readTexts({ request, settings }: RequestContext, lists: readonly string[]): Promise<unknown> {
  const body = await readJson(request, settings);
  for (const name of lists) {
    const { [name]: texts } = (body ?? {}) as { readonly [list: string]: unknown };
    if (Array.isArray(texts) && texts.length > settings.maxInputs)
      throw tooMany(name, texts.length, settings.maxInputs);
  }
  return body;
}

async function answered(
  { charge }: RequestContext,
  what: string,
  answer: Promise<{ readonly usage: { readonly total_tokens: number } }> | undefined,
): Promise<WireResponse> {
  if (!answer) throw unsupported(what);
  const response = await answer;
  charge(response.usage.total_tokens);
  return json(response);
}
