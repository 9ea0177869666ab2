/** The models of a runtime's options, by name -> the settings behind a reference. */
import fs from 'node:fs';
import path from 'node:path';
import { packageFile } from '../common/index.ts';
import type { OnpolicyError } from '../errors.ts';
import type { AdapterOption, ModelOptions } from '../protocol/index.ts';
import { missingModel } from './missing-model.ts';

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
  /** Names that references may use: that of the default model, then all others. */
  readonly all: readonly string[];
  /** Returns the settings of a reference. Null or empty stands for the default model. */
  find(reference: string | null): ModelOptions;
  /** Returns a key that references to the same settings share. */
  keyOf(reference: string | null): ModelOptions | string;
  /** Returns the adapters of a name, or of the default model. Empty for other references. */
  adaptersOf(reference: string | null): readonly AdapterOption[];
  /** Returns true for a name, the URI of a model, or an existing path. */
  has(reference: string): boolean;
  /** Returns the error of a reference that names no model, at a field of a request. */
  missing(reference: string, field: string): OnpolicyError;
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
  const all = [...new Set([fallbackName, ...aliases.keys()])];
  const find = (reference: string | null): ModelOptions =>
    reference ? (aliases.get(reference) ?? { path: reference }) : fallback;
  return {
    aliases,
    fallback,
    fallbackName,
    all,
    find,
    keyOf: (reference) => (reference ? (aliases.get(reference) ?? reference) : fallback),
    adaptersOf: (reference) => find(reference).adapters ?? [],
    has: (reference) => {
      if (all.includes(reference) || reference.startsWith('hf:')) return true;
      return reference !== '' && fs.existsSync(path.resolve(reference));
    },
    missing: (reference, field) => missingModel(field, reference, all),
  };
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
export function loadKey(file: string, options: ModelOptions): string {
  return JSON.stringify([file, { ...options, path: null, adapters: null }]);
}
