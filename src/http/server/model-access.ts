/** The models of a service -> those that a token may use, and the list of them. */
import { OnpolicyError } from '../../errors.ts';
import type { Model } from '../../protocol/index.ts';
import { allows } from './auth.ts';
import type { RequestContext } from './context.ts';

/** Refuses a path or a download that only `admin` may name. */
export function requireModel(
  context: Pick<RequestContext, 'service' | 'settings' | 'scopes'>,
  model: string | null | undefined,
): void {
  if (!model || !namesFile(model) || namedModels(context).includes(model)) return;
  if (allows(context.scopes, ['admin'])) return;
  throw new OnpolicyError('FORBIDDEN', 'model: this token does not allow to name files and downloads', {
    param: 'model',
  });
}

/** Models that completions can name: those with a name, then the registered ones. */
export async function servedModels(context: RequestContext): Promise<{ id: string }[]> {
  const { service, call } = context;
  const named = namedModels(context).map((id) => ({ id, object: 'model', created: 0, owned_by: 'onpolicy' }));
  const registered: Model[] = [];
  for (let after: string | null = null; service.models; ) {
    const page = await service.models.list({ order: 'asc', limit: 100, after }, call);
    registered.push(...page.data);
    if (!page.has_more || page.last_id === null) break;
    after = page.last_id;
  }
  return [
    ...named,
    ...registered.map(({ id, name, created }) => ({
      id: name ?? id,
      object: 'model',
      created,
      owned_by: 'onpolicy',
    })),
  ];
}

/** Models with a name: those of the service, then those of the option `models`. */
function namedModels({ service, settings }: Pick<RequestContext, 'service' | 'settings'>): string[] {
  return [...new Set([...(service.servedModels?.() ?? []), ...settings.models])];
}

/** Whether it is a path or a download, not the name of a model. */
function namesFile(model: string): boolean {
  return /[/\\:]|\.gguf$/i.test(model);
}
