/** The models and adapters of a service -> those that a token may use. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { errorAt } from '../../errors.ts';
import { isTraceId } from '../../protocol/index.ts';
import { allows } from './auth.ts';
import type { RequestContext } from './context.ts';

type Access = Pick<RequestContext, 'service' | 'settings' | 'scopes'>;

/** Refuses a path or a download that only `admin` may name. `model`: of a body that is checked, or will be. */
export function requireModel(context: Access, { model }: { readonly model?: unknown }): void {
  requireName(context, model, 'model');
}

/** What is read of a request for an answer before it is checked, or after. */
type Asked = {
  readonly model?: unknown;
  readonly adapters?: unknown;
  readonly speculation?: unknown;
  readonly request_id?: unknown;
};

/** The same, and a model that drafts, and adapters outside of the folders of adapters. The request has its id from then on. */
export async function requireModelAndAdapters(
  context: RequestContext,
  { model, adapters, speculation, request_id }: Asked,
): Promise<void> {
  if (isTraceId(request_id)) context.setRequestId(request_id);
  requireName(context, model, 'model');
  requireName(context, (speculation as { model?: unknown } | null | undefined)?.model, 'speculation.model');
  if (!Array.isArray(adapters)) return;
  for (const [i, adapter] of adapters.entries()) {
    const { model: name, file } = (adapter ?? {}) as { model?: unknown; file?: unknown };
    requireName(context, name, `adapters.${i}.model`);
    if (typeof file === 'string') await requireAdapterFile(context, file, `adapters.${i}.file`);
  }
}

/** The real path of an adapter in one of the folders of adapters. */
export async function requireAdapterFile({ settings }: Access, file: string, field: string): Promise<string> {
  const found = await fs.realpath(file).catch(() => null);
  const folders = await Promise.all(
    settings.adapterFolders.map((folder) => fs.realpath(folder).catch(() => null)),
  );
  const isAllowed = (folder: string | null): boolean =>
    found !== null && folder !== null && `${found}${path.sep}`.startsWith(`${folder}${path.sep}`);
  if (folders.some(isAllowed)) return found!;
  // Whether a file outside of them exists is nobody's business.
  throw errorAt(
    field,
    'FORBIDDEN',
    'expected an adapter within the folders of adapters that this server allows',
  );
}

function requireName(context: Access, name: unknown, field: string): void {
  if (typeof name !== 'string' || name === '') return;
  if (!namesFile(name) || namedModels(context).includes(name) || allows(context.scopes, ['admin'])) return;
  throw errorAt(field, 'FORBIDDEN', 'this token does not allow files and downloads as models');
}

/** Models with a name: those of the service, then those of the option `models`, then adapters. */
export function namedModels({ service, settings }: Pick<RequestContext, 'service' | 'settings'>): string[] {
  const adapters = (service.adapters?.list() ?? []).map(({ name }) => name);
  return [...new Set([...(service.servedModels?.() ?? []), ...settings.models, ...adapters])];
}

function namesFile(model: string): boolean {
  return /[/\\:]|\.gguf$/i.test(model);
}
