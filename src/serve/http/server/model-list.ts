/** The models that completions can name -> lists of them, in OpenAI's and Anthropic's forms. */
import { allOf } from '../../../common/index.ts';
import { OnpolicyError } from '../../../errors.ts';
import { fault, type Model, throwFaults } from '../../../protocol/index.ts';
import type { ModelCard } from '../../../protocol/service/index.ts';
import type { RequestContext } from './context.ts';
import { namedModels } from './model-access.ts';
import { json, type ServedResponse } from './wire.ts';

/** A model that completions can name. */
export type ServedModel = {
  readonly id: string;
  /** Seconds since 1970. 0 if unknown. */
  readonly created: number;
  /** Facts about the model. Null if its files are not on this machine. */
  readonly card: ModelCard | null;
  /** File and base model of an adapter. Null for other models. */
  readonly adapter: { readonly root: string; readonly parent: string | null } | null;
};

/** Returns the models that have a name, then the adapters, then the registered models. */
export async function servedModels(context: RequestContext): Promise<ServedModel[]> {
  const { service, call } = context;
  const adapters = service.adapters?.list() ?? [];
  const isAdapter = new Set(adapters.map(({ name }) => name));
  const names = namedModels(context).filter((id) => !isAdapter.has(id));
  const registered: Model[] = [];
  const { models } = service;
  if (models)
    for await (const model of allOf((after) => models.list({ order: 'asc', limit: 100, after }, call)))
      registered.push(model);
  const cardOf = async (name: string | null): Promise<ModelCard | null> =>
    (await service.modelCard?.(name)) ?? null;
  return await Promise.all([
    ...names.map(async (id) => ({ id, created: 0, adapter: null, card: await cardOf(id) })),
    ...adapters.map(async ({ name: id, path: root, base }) => {
      const parent = base ?? names[0] ?? null;
      return { id, created: 0, adapter: { root, parent }, card: await cardOf(parent) };
    }),
    ...registered.map(async ({ id, name, created, base_model }) => {
      return { id: name ?? id, created, adapter: null, card: await cardOf(base_model) };
    }),
  ]);
}

/** `GET /v1/models`, in Anthropic's form for its clients. */
export async function listServedModels(context: RequestContext): Promise<ServedResponse> {
  const models = await servedModels(context);
  if (isAnthropic(context)) return json(anthropicPage(models, context.url.searchParams));
  return json({ object: 'list', data: models.map(asOpenai), models: models.map(asTypesafe) });
}

/** `GET /v1/models/{id}`. */
export async function retrieveServedModel(context: RequestContext): Promise<ServedResponse> {
  const found = (await servedModels(context)).find(({ id }) => id === context.id);
  if (!found) throw new OnpolicyError('MODEL_NOT_FOUND', `there is no model ${context.id.slice(0, 200)}`);
  return json(isAnthropic(context) ? asAnthropic(found) : asOpenai(found));
}

function isAnthropic({ request }: RequestContext): boolean {
  return request.headers.get('anthropic-version') !== null;
}

function asOpenai({ id, created, card, adapter }: ServedModel): object {
  const max_model_len = card?.contextSize ?? null;
  const architecture = card ? { architecture: modalitiesOf(card) } : {};
  return { id, object: 'model', created, owned_by: 'onpolicy', max_model_len, ...adapter, ...architecture };
}

/** Names of capabilities in `output_modalities`. */
const OUTPUTS = { completion: 'text', embedding: 'embeddings', rerank: 'rerank', decision: 'decisions' };

/** Returns what a model takes and gives, in the words of llama.cpp and OpenRouter. Clients find decision models by them. */
function modalitiesOf({ capabilities }: ModelCard): object {
  return {
    input_modalities: ['text', ...(capabilities.includes('vision') ? ['image'] : [])],
    output_modalities: capabilities.flatMap((name) => OUTPUTS[name as keyof typeof OUTPUTS] ?? []),
  };
}

/** Returns an entry in the form of TypeSafe's clients, which read the field `models` of the same response. */
function asTypesafe({ id, created }: ServedModel): object {
  return { name: id, description: '', release_date: new Date(created * 1000).toISOString().slice(0, 10) };
}

function asAnthropic({ id, created, card }: ServedModel): { id: string } {
  const most = card?.contextSize ?? null;
  const never = { deprecated_at: null, retires_at: null, lifecycle: 'active' };
  const created_at = new Date(created * 1000).toISOString();
  const about = { display_name: id, line: null, capabilities: null };
  return Object.assign(
    { type: 'model', id, created_at, max_input_tokens: most, max_tokens: most },
    about,
    never,
  );
}

const MOST_MODELS = 1000;
const USUAL_MODELS = 20;

function anthropicPage(models: readonly ServedModel[], query: URLSearchParams): object {
  const limit = query.get('limit');
  const count = limit === null ? USUAL_MODELS : Number(limit);
  if (!Number.isInteger(count) || count < 1 || count > MOST_MODELS)
    throwFaults([fault(['limit'], 'range', `an integer from 1 to ${MOST_MODELS}`, limit)]);
  const placeOf = (field: 'after_id' | 'before_id'): number | null => {
    const id = query.get(field);
    const place = models.findIndex((model) => model.id === id);
    if (id !== null && place < 0) throwFaults([fault([field], 'value', 'the id of a model', id)]);
    return id === null ? null : place;
  };
  const before = placeOf('before_id');
  const start = before === null ? (placeOf('after_id') ?? -1) + 1 : Math.max(0, before - count);
  const end = Math.min(before ?? models.length, start + count);
  const data = models.slice(start, end).map(asAnthropic);
  const has_more = before === null ? end < models.length : start > 0;
  return { data, has_more, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null };
}
