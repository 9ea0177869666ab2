/** A value -> JSON text of Python's json.dumps, with the settings of chat templates. */
import { sortBy, truth } from '../python/compare.ts';
import { reprFloat } from '../python/float-text.ts';
import { unpack } from '../python/iterate.ts';
import { intOf, intText } from '../python/numbers.ts';
import { typeError, valueError } from '../python/py-error.ts';
import type { RenderState } from '../python/render-state.ts';
import { TextWriter } from '../python/text.ts';
import { Dict, isList, PyFloat, Tuple, textOf, typeName, type Value } from '../python/values.ts';

/** Keyword arguments of tojson. */
export type JsonOptions = {
  readonly ensureAscii: boolean;
  /** Indentation of one level; null for a single line. */
  readonly indent: string | null;
  readonly itemSeparator: string;
  readonly keySeparator: string;
  readonly sortKeys: boolean;
};

/** Reads the arguments of the filter as Python's json.dumps does. */
export function readJsonOptions(
  state: RenderState,
  [ensureAscii, indent, separators, sortKeys]: readonly (Value | undefined)[],
): JsonOptions {
  const level = readIndent(state, indent ?? null);
  let itemSeparator = level === null ? ', ' : ',';
  let keySeparator = ': ';
  if (separators !== undefined && separators !== null) {
    const [item, key] = unpack(state, separators, 2).map((part) => {
      const text = textOf(part);
      return text ?? typeError(`separators must be str, not ${typeName(part)}`);
    });
    itemSeparator = item!;
    keySeparator = key!;
  }
  return {
    ensureAscii: ensureAscii !== undefined && truth(state, ensureAscii),
    indent: level,
    itemSeparator,
    keySeparator,
    sortKeys: sortKeys !== undefined && truth(state, sortKeys),
  };
}

function readIndent(state: RenderState, indent: Value): string | null {
  if (indent === null) return null;
  const text = textOf(indent);
  if (text !== undefined) return text;
  const width = intOf(indent);
  if (width === undefined)
    return typeError(`can't multiply sequence by non-int of type '${typeName(indent)}'`);
  const count = Math.max(0, Number(width));
  state.reserve(count);
  return ' '.repeat(count);
}

/** `json.dumps(value, ...)`. */
export function toJson(state: RenderState, value: Value, options: JsonOptions): string {
  const writer = new JsonWriter(state, options);
  writer.write(value, '\n');
  return writer.text;
}

class JsonWriter extends TextWriter {
  readonly #options: JsonOptions;
  readonly #active = new Set<Value>();

  constructor(state: RenderState, options: JsonOptions) {
    super(state);
    this.#options = options;
  }

  /** `newline` is a line feed with the indentation of the value's level. */
  write(value: Value, newline: string): void {
    this.state.step();
    const text = textOf(value);
    if (text !== undefined) this.add(this.#quote(text));
    else if (value === null) this.add('null');
    else if (typeof value === 'boolean') this.add(String(value));
    else if (typeof value === 'number' || typeof value === 'bigint') this.add(intText(value));
    else if (value instanceof PyFloat) this.add(jsonFloat(value.value));
    else if (isList(value)) this.#array(value, value, newline);
    else if (value instanceof Tuple) this.#array(value, value.items, newline);
    else if (value instanceof Dict) this.#object(value, newline);
    else typeError(`Object of type ${typeName(value)} is not JSON serializable`);
  }

  #enter(value: Value): void {
    if (this.#active.has(value)) valueError('Circular reference detected');
    this.#active.add(value);
    this.state.enter();
  }

  #leave(value: Value): void {
    this.#active.delete(value);
    this.state.leave();
  }

  #array(value: Value, items: readonly Value[], newline: string): void {
    if (items.length === 0) {
      this.add('[]');
      return;
    }
    this.#enter(value);
    const { indent, itemSeparator } = this.#options;
    const inner = indent === null ? '' : newline + indent;
    this.add(`[${inner}`);
    items.forEach((item, index) => {
      if (index > 0) this.add(itemSeparator + inner);
      this.write(item, inner);
    });
    this.add(indent === null ? ']' : `${newline}]`);
    this.#leave(value);
  }

  #object(dict: Dict, newline: string): void {
    if (dict.size === 0) {
      this.add('{}');
      return;
    }
    this.#enter(dict);
    const { indent, itemSeparator, keySeparator, sortKeys } = this.#options;
    const inner = indent === null ? '' : newline + indent;
    let separator = `{${inner}`;
    for (const key of sortKeys ? sortBy(this.state, [...dict.keys()], (item) => item) : dict.keys()) {
      this.add(separator + this.#quote(this.#key(key)) + keySeparator);
      this.write(dict.get(key)!, inner);
      separator = itemSeparator + inner;
    }
    this.add(indent === null ? '}' : `${newline}}`);
    this.#leave(dict);
  }

  #key(key: Value): string {
    const text = textOf(key);
    if (text !== undefined) return text;
    if (key === null) return 'null';
    if (typeof key === 'boolean') return String(key);
    if (typeof key === 'number' || typeof key === 'bigint') return intText(key);
    if (key instanceof PyFloat) return jsonFloat(key.value);
    return typeError(`keys must be str, int, float, bool or None, not ${typeName(key)}`);
  }

  #quote(text: string): string {
    if (!this.#options.ensureAscii) return quoteJson(text);
    return quoteJson(text).replace(/[\u007f-\uffff]/g, escapeUnit);
  }
}

function jsonFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  return Number.isFinite(value) ? reprFloat(value) : value > 0 ? 'Infinity' : '-Infinity';
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** JSON.stringify escapes the same characters as json.dumps, except lone surrogates. */
function quoteJson(text: string): string {
  return JSON.stringify(text);
}
