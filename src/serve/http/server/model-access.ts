/** The models and adapters of a service -> the ones that a token may use. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { errorAt } from '../../../errors.ts';
import { closestName, isTraceId } from '../../../protocol/index.ts';
import { allows } from './auth.ts';
import type { RequestContext } from './context.ts';

type Access = Pick<RequestContext, 'service' | 'settings' | 'scopes'>;

/**
 * Refuses a model that only `admin` may name: one that is neither served nor registered. `request`: a body before or after its check.
 * @throws OnpolicyError `FORBIDDEN` for a file or a download, `MODEL_NOT_FOUND` for another name
 */
export async function requireModel(context: Access, request: object): Promise<void> {
  for (const field of MODEL_FIELDS)
    await requireName(context, (request as Readonly<Record<string, unknown>>)[field], field);
}

/** Fields of requests that name a model which answers or is trained. */
const MODEL_FIELDS = ['model', 'base_model'];

/** Fields of a request that are read here, before or after it is checked. */
type Asked = {
  readonly model?: unknown;
  readonly adapters?: unknown;
  readonly speculation?: unknown;
  readonly request_id?: unknown;
};

/**
 * Checks all models of a request as {@link requireModel} does, with its draft model, and that adapter files lie in the allowed folders.
 * Also sets the trace id of the request, if the body has one.
 */
export async function requireModelAndAdapters(context: RequestContext, request: Asked): Promise<void> {
  const { adapters, speculation, request_id } = request;
  if (isTraceId(request_id)) context.setRequestId(request_id);
  await requireModel(context, request);
  await requireName(
    context,
    (speculation as { model?: unknown } | null | undefined)?.model,
    'speculation.model',
  );
  if (!Array.isArray(adapters)) return;
  for (const [i, adapter] of adapters.entries()) {
    const { model: name, file } = (adapter ?? {}) as { model?: unknown; file?: unknown };
    await requireName(context, name, `adapters.${i}.model`);
    if (typeof file === 'string') await requireAdapterFile(context, file, `adapters.${i}.file`);
  }
}

/** Returns the real path of an adapter in one of the allowed folders. Throws `FORBIDDEN` for any other path. */
export async function requireAdapterFile({ settings }: Access, file: string, field: string): Promise<string> {
  const found = await fs.realpath(file).catch(() => null);
  const folders = await Promise.all(
    settings.adapterFolders.map((folder) => fs.realpath(folder).catch(() => null)),
  );
  const isAllowed = (folder: string | null): boolean =>
    found !== null && folder !== null && `${found}${path.sep}`.startsWith(`${folder}${path.sep}`);
  if (folders.some(isAllowed)) return found!;
  // The same error for missing files, so that it does not tell whether a file outside of the folders exists.
  throw errorAt(
    field,
    'FORBIDDEN',
    'expected an adapter within the folders of adapters that this server allows',
  );
}

async function requireName(context: Access, name: unknown, field: string): Promise<void> {
  if (typeof name !== 'string' || name === '' || allows(context.scopes, ['admin'])) return;
  const names = namedModels(context);
  if (names.includes(name)) return;
  if (namesFile(name)) throw errorAt(field, 'FORBIDDEN', FOREIGN);
  const { service } = context;
  // A service without `isRegistered` reports unknown models itself.
  if (!service.isRegistered || (await service.isRegistered(name))) return;
  const near = closestName(name, names);
  const hint = near === null ? '' : `; did you mean ${near}?`;
  const got = JSON.stringify(name.slice(0, MOST_SHOWN));
  throw errorAt(field, 'MODEL_NOT_FOUND', `no model has this name, got ${got}${hint}`);
}

const FOREIGN = 'this token does not allow files and downloads as models';
const MOST_SHOWN = 200;

/** Returns the names of models: those of the service, then those of the option `models`, then adapters. */
export function namedModels({ service, settings }: Pick<RequestContext, 'service' | 'settings'>): string[] {
  const adapters = (service.adapters?.list() ?? []).map(({ name }) => name);
  return [...new Set([...(service.servedModels?.() ?? []), ...settings.models, ...adapters])];
}

function namesFile(model: string): boolean {
  return /[/\\:]|\.gguf$/i.test(model);
}
