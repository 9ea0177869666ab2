/** A value -> JSON text of Python's json.dumps, with the settings of chat templates. */
import { sortBy, truth } from '../python/compare.ts';
import { reprFloat } from '../python/float-text.ts';
import { unpack } from '../python/iterate.ts';
import { intOf, intText } from '../python/numbers.ts';
import { typeError } from '../python/py-error.ts';
import type { RenderState } from '../python/render-state.ts';
import { TextWriter } from '../python/text.ts';
import { Dict, isList, PyFloat, Tuple, textOf, typeName, type Value } from '../python/values.ts';

type JsonOptions = ReturnType<typeof readJsonOptions>;

/** Reads the arguments of the filter as Python's json.dumps does. */
function readJsonOptions(
  state: RenderState,
  [ensureAscii, indent, separators, sortKeys]: readonly (Value | undefined)[],
) {
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
    indent: level, // indentation of one level; null for a single line
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

/** Returns `json.dumps(value, ...)`. `args` are ensure_ascii, indent, separators and sort_keys. */
export function toJson(state: RenderState, value: Value, args: readonly (Value | undefined)[]): string {
  const writer = new JsonWriter(state, readJsonOptions(state, args));
  writer.write(value, '\n');
  return writer.text;
}

class JsonWriter extends TextWriter {
  readonly #options: JsonOptions;

  constructor(state: RenderState, options: JsonOptions) {
    super(state);
    this.#options = options;
  }

  /** Writes a value. `newline` is a line feed with the indentation of the value's level. */
  write(value: Value, newline: string): void {
    this.state.step();
    const text = textOf(value);
    const scalar = text === undefined ? scalarText(value) : this.#quote(text);
    if (scalar !== undefined) this.add(scalar);
    else if (isList(value)) this.#array(value, newline);
    else if (value instanceof Tuple) this.#array(value.items, newline);
    else if (value instanceof Dict) this.#object(value, newline);
    else typeError(`Object of type ${typeName(value)} is not JSON serializable`);
  }

  #array(items: readonly Value[], newline: string): void {
    if (items.length === 0) return this.add('[]');
    const { indent, itemSeparator } = this.#options;
    const inner = indent === null ? '' : newline + indent;
    const close = indent === null ? ']' : `${newline}]`;
    this.nested(`[${inner}`, items, itemSeparator + inner, close, (item) => this.write(item, inner));
  }

  #object(dict: Dict, newline: string): void {
    if (dict.size === 0) return this.add('{}');
    const { indent, itemSeparator, keySeparator, sortKeys } = this.#options;
    const inner = indent === null ? '' : newline + indent;
    const close = indent === null ? '}' : `${newline}}`;
    const keys = sortKeys ? sortBy(this.state, [...dict.keys()], (key) => key) : dict.keys();
    this.nested(`{${inner}`, keys, itemSeparator + inner, close, (key) => {
      this.add(this.#quote(this.#key(key)) + keySeparator);
      this.write(dict.get(key)!, inner);
    });
  }

  #key(key: Value): string {
    const text = textOf(key) ?? scalarText(key);
    return text ?? typeError(`keys must be str, int, float, bool or None, not ${typeName(key)}`);
  }

  #quote(text: string): string {
    const quoted = JSON.stringify(text); // escapes as json.dumps does, except lone surrogates
    return this.#options.ensureAscii ? quoted.replace(/[\u007f-\uffff]/g, escapeUnit) : quoted;
  }
}

/** Returns the text of null, a boolean or a number, or undefined for other values. */
function scalarText(value: Value): string | undefined {
  if (value === null) return 'null';
  if (typeof value === 'boolean') return String(value);
  if (typeof value === 'number' || typeof value === 'bigint') return intText(value);
  if (!(value instanceof PyFloat)) return undefined;
  if (Number.isFinite(value.value)) return reprFloat(value.value);
  return Number.isNaN(value.value) ? 'NaN' : value.value > 0 ? 'Infinity' : '-Infinity';
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
