/** A request's model reference and adapters -> a lease on a loaded model and the mix of adapters beside it. */
import path from 'node:path';
import { atField, LeaseScope } from '../common/index.ts';
import { errorAt } from '../errors.ts';
import type { AdapterOption, ValidAdapter } from '../protocol/index.ts';
import { type AdapterFile, identify } from './adapter-files.ts';
import type { AdapterLease, AdapterPart } from './adapters.ts';
import type { ModelUseOptions } from './model-use.ts';
import type { Models } from './models.ts';
import type { NamedAdapters } from './named-adapters.ts';
import type { RunningModel } from './running-model.ts';

/** A registered model or checkpoint. It is not deleted before this is disposed of. */
export type Registered = Disposable & {
  readonly id: string;
  /** Reference of the base model that training started from. */
  readonly baseModel: string;
  /** Adapter of the checkpoint. Null for the base model itself. */
  readonly adapter: AdapterFile | null;
  /** True if this is the step that the model's name without a step refers to. */
  readonly isNewest: boolean;
};

/** Finds the model of an id, a name or `name@step`. Returns null for other references. */
export type FindRegistered = (reference: string) => Promise<Registered | null>;

/** Everything that references can name. */
export type References = {
  readonly models: Pick<Models, 'names' | 'memory'>;
  readonly find: FindRegistered;
  readonly named: NamedAdapters;
};

/** The model and adapter that answer a request. Dispose of it when the answer is complete. */
export type ModelLease = Disposable & {
  readonly model: RunningModel;
  readonly adapter: Pick<AdapterLease, 'number' | 'identity'> | null;
  /** Folder of the checkpoint that the reference names. Null for other models. */
  readonly checkpoint: string | null;
};

/** An adapter as the caller gave it, and the path of the caller's field. */
type Given = ValidAdapter & { readonly field: string };

/** An adapter's file, and the path of the caller's field. */
export type FoundPart = AdapterPart & { readonly field: string };

/** An adapter of a lease. It stays loaded for `keeper` unless that is null or `isWanted` returns false. */
type Part = FoundPart & { readonly keeper: string | null; readonly isWanted?: () => boolean };

/** The model and adapters that a request names, before anything is loaded. */
type Found = {
  /** Null for the default model. */
  readonly baseModel: string | null;
  readonly parts: readonly Part[];
  readonly registered: Registered | null;
};

/**
 * Loads the model of a reference, and beside it the adapter that the reference names, those of the model's options, and those of the
 * request. A registered model's newest adapter stays loaded, as do those of options and those with a name. Replaced adapters, and the files
 * of requests, are freed when the last request that uses them has ended.
 */
export async function leaseModel(
  references: References,
  reference: string | null,
  options: ModelUseOptions & { readonly adapters?: readonly ValidAdapter[] },
): Promise<ModelLease> {
  using scope = new LeaseScope();
  const found = await findParts(references, reference, options.adapters ?? [], scope);
  const { baseModel, parts, registered } = found;
  const { model } = scope.add(await references.models.memory.use(baseModel, options));
  if (registered?.isNewest && !registered.adapter) model.adapters.drop(registered.id);
  for (const { file, keeper, isWanted, field } of parts) {
    if (keeper === null) scope.add(await atField(field, () => model.adapters.use(file)));
    else await atField(field, () => model.adapters.keep(keeper, file, isWanted));
  }
  const checkpoint = registered?.adapter ? path.dirname(registered.adapter.path) : null;
  const adapter = parts.length > 0 ? scope.add(await model.adapters.mix(parts)) : null;
  return scope.handOver({ model, adapter, checkpoint });
}

/** Finds the model and adapters of a request without loading them. They are not deleted before `scope` is disposed of. */
export async function findParts(
  references: References,
  reference: string | null,
  given: readonly ValidAdapter[],
  scope: LeaseScope,
): Promise<Found> {
  const { named: names, find, models } = references;
  const named = reference === null ? null : names.find(reference);
  const registered = reference === null || named ? null : scope.add(await find(reference));
  const baseModel = named ? named.base : (registered?.baseModel ?? reference);
  const parts: Part[] = [];
  if (named) parts.push({ ...names.keeping(named), scale: 1, field: 'model' });
  if (registered?.adapter) {
    const { id, adapter: file, isNewest } = registered;
    parts.push({ file, scale: 1, keeper: isNewest ? id : null, field: 'model' });
  }
  const adapters = [
    ...fromOptions(models.names.adaptersOf(baseModel), baseModel),
    ...given.map((adapter, i) => ({ ...adapter, field: `adapters.${i}` })),
  ];
  for (const adapter of adapters) parts.push(...(await resolve(adapter, references, scope, [])));
  return { baseModel, parts, registered };
}

function fromOptions(adapters: readonly AdapterOption[], name: string | null): Given[] {
  return adapters.map(({ model = null, file = null, scale = 1 }, i) => ({
    model,
    file,
    scale,
    field: `${name === null ? 'model' : `models.${name}`}.adapters.${i}`,
  }));
}

/** Returns the files of one adapter; a name may stand for several. `seen`: names that were followed. */
async function resolve(
  { model: name, file, scale, field }: Given,
  references: References,
  scope: LeaseScope,
  seen: readonly string[],
): Promise<Part[]> {
  if (file !== null) {
    const keeper = field.startsWith('adapters.') ? null : field;
    return [
      { file: await atField(`${field}.file`, () => identify(file)), scale, keeper, field: `${field}.file` },
    ];
  }
  const reference = name!;
  const at = `${field}.model`;
  const { named, find, models } = references;
  const loaded = named.find(reference);
  if (loaded) return [{ ...named.keeping(loaded), scale, field: at }];
  const registered = scope.add(await find(reference));
  if (registered)
    return registered.adapter ? [{ file: registered.adapter, scale, keeper: null, field: at }] : [];
  const adapters = seen.includes(reference) ? [] : models.names.adaptersOf(reference);
  if (adapters.length === 0)
    throw errorAt(
      at,
      'MODEL_NOT_FOUND',
      `expected a registered model or checkpoint, or a name that has adapters, got ${JSON.stringify(reference.slice(0, 200))}`,
    );
  const parts: Part[] = [];
  for (const inner of fromOptions(adapters, reference)) {
    const found = await resolve(inner, references, scope, [...seen, reference]);
    parts.push(...found.map((part) => ({ ...part, scale: part.scale * scale })));
  }
  return parts;
}
