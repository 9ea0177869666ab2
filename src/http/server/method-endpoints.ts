/** A method of every service whose requests have texts -> the endpoint that answers it. */
import { innerMethod } from '../../checked-service.ts';
import type { Checked } from '../../protocol/index.ts';
import { type AnyRequest, type Inner, METHODS, type Method, type MethodName } from '../../service.ts';
import { type EndpointHandler, limitList, unsupported } from './context.ts';
import { requireModel } from './model-access.ts';
import { json } from './wire.ts';

/** `POST /v1/embeddings` and so on. */
export function methodEndpoint(name: MethodName): EndpointHandler {
  const { check, what, texts = [] }: Method = METHODS[name];
  return async (context) => {
    const { settings, service, validation, call, charge } = context;
    const body = await context.body();
    for (const field of texts) if (!hasTokens(body, field)) limitList(body, field, settings.maxInputs);
    const checked = check(body, validation) as Checked<AnyRequest>;
    requireModel(context, checked);
    const answer = innerMethod(service, name) as Inner<AnyRequest, object> | undefined;
    if (!answer) throw unsupported(what);
    const response: { readonly usage?: { readonly total_tokens: number } } = await answer(checked, call);
    charge(response.usage?.total_tokens ?? 0);
    return json(response);
  };
}

/** Whether a field is one text, as tokens. */
function hasTokens(body: unknown, field: string): boolean {
  const { [field]: list } = (body ?? {}) as Readonly<Record<string, unknown>>;
  return Array.isArray(list) && typeof list[0] === 'number';
}
