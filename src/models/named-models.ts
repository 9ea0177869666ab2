/** The models of a runtime's options, by name -> the settings behind a reference. */
import { packageFile } from '../common/index.ts';
import type { ModelOptions } from '../protocol/index.ts';

/** The model that ships with the package. */
export const EMBEDDED_MODEL = packageFile('models/onpolicy-tiny.gguf');

/** Its name in references, unless an alias has the same name. */
export const EMBEDDED_NAME = 'onpolicy-tiny';

/** Settings that the names of a runtime's models stand for. */
export type NamedModels = {
  readonly aliases: ReadonlyMap<string, ModelOptions>;
  /** The default model, and its name. */
  readonly fallback: ModelOptions;
  readonly fallbackName: string;
  /** Returns the settings of a reference. Null or empty stands for the default model. */
  find(reference: string | null): ModelOptions;
};

/** Follows aliases to their models. */
export function namedModels(
  defaultModel: string | ModelOptions | null,
  models: Readonly<Record<string, string | ModelOptions>>,
): NamedModels {
  const named = Object.entries({ [EMBEDDED_NAME]: EMBEDDED_MODEL, ...models });
  const given = new Map(named.map(([name, model]) => [name, toModelOptions(model)]));
  const aliases = new Map([...given].map(([name, model]) => [name, resolveAlias(model, given, [name])]));
  const { path: fallbackName, ...own } = toModelOptions(defaultModel ?? EMBEDDED_NAME);
  const fallback = resolveAlias({ ...own, path: fallbackName }, given, []);
  const find = (reference: string | null): ModelOptions =>
    reference ? (aliases.get(reference) ?? { path: reference }) : fallback;
  return { aliases, fallback, fallbackName, find };
}

/** Resolves an alias, also through other aliases. Settings of earlier aliases have priority. `seen`: aliases followed. */
function resolveAlias(
  model: ModelOptions,
  aliases: ReadonlyMap<string, ModelOptions>,
  seen: readonly string[],
): ModelOptions {
  const next = seen.includes(model.path) ? undefined : aliases.get(model.path);
  if (next) {
    const { path: _alias, ...own } = model;
    return resolveAlias({ ...next, ...own }, aliases, [...seen, model.path]);
  }
  return model.path === EMBEDDED_NAME ? { ...model, path: EMBEDDED_MODEL } : model;
}

function toModelOptions(model: string | ModelOptions): ModelOptions {
  return typeof model === 'string' ? { path: model } : model;
}

/** Returns the key that distinguishes loaded models: the file and its load options. */
export function keyOf(file: string, options: ModelOptions): string {
  return JSON.stringify([file, { ...options, path: null, adapters: null }]);
}
