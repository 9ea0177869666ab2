/** A request's model reference and adapters -> a lease on a loaded model and the mix of adapters beside it. */
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
  /** Reference of the model that it started from. */
  readonly baseModel: string;
  /** Of the checkpoint; null: the base model itself. */
  readonly adapter: AdapterFile | null;
  /** Whether this is what the model answers with when no step is named. */
  readonly isNewest: boolean;
};

/** Finds the model of an id, a name or `name@step`; null for other references. */
export type FindRegistered = (reference: string) => Promise<Registered | null>;

/** What references can name. */
export type References = {
  readonly models: Models;
  readonly find: FindRegistered;
  readonly named: NamedAdapters;
};

/** What answers a request. Dispose of it when the answer is complete. */
export type ModelLease = Disposable & {
  readonly model: RunningModel;
  readonly adapter: Pick<AdapterLease, 'number' | 'identity'> | null;
};

/** An adapter as a caller gives it, and the caller's path of it. */
type Given = ValidAdapter & { readonly field: string };

/** An adapter's file, and the caller's path of it. */
export type FoundPart = AdapterPart & { readonly field: string };

/** An adapter of a lease: kept loaded for this keeper, if there is one and it still wants it. */
type Part = FoundPart & { readonly keeper: string | null; readonly isWanted?: () => boolean };

/** What a reference and adapters name, before anything is loaded. */
type Found = {
  /** Null: the default model. */
  readonly baseModel: string | null;
  readonly parts: readonly Part[];
  readonly registered: Registered | null;
};

/**
 * Loads the model of a reference. Beside it come the adapter that the reference names, those of its options, and those of the
 * request. A registered model's newest adapter stays loaded, as do those of options and those with a name; what they replace,
 * and the files of requests, are freed when the last request that uses them has ended.
 */
export async function leaseModel(
  references: References,
  reference: string | null,
  options: ModelUseOptions & { readonly adapters?: readonly ValidAdapter[] },
): Promise<ModelLease> {
  using scope = new LeaseScope();
  const found = await findParts(references, reference, options.adapters ?? [], scope);
  const { baseModel, parts, registered } = found;
  const { model } = scope.add(await references.models.use(baseModel, options));
  if (registered?.isNewest && !registered.adapter) model.adapters.drop(registered.id);
  for (const { file, keeper, isWanted, field } of parts) {
    if (keeper === null) scope.add(await atField(field, () => model.adapters.use(file)));
    else await atField(field, () => model.adapters.keep(keeper, file, isWanted));
  }
  return scope.handOver({ model, adapter: scope.add(await model.adapters.mix(parts)) });
}

/** Loads nothing. What is found is not deleted before `scope` is disposed of. */
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
    ...fromOptions(models.adaptersOf(baseModel), baseModel),
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

/** The files of one adapter: several for a name that stands for several. `seen`: names that were followed. */
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
  const adapters = seen.includes(reference) ? [] : models.adaptersOf(reference);
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
