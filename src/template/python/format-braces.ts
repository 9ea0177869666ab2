/** A template of braces and arguments -> text of `str.format`. The caller passes the sandboxed lookups of fields. */
import { formatValue } from './format-spec.ts';
import { PyError, typeError, valueError } from './py-error.ts';
import type { RenderState } from './render-state.ts';
import { asciiRepr, escapeHtml, repr, toText } from './text.ts';
import { type Dict, type Keywords, Markup, type Value } from './values.ts';

/** Looks up an attribute or item of a field. */
export type FieldLookup = {
  readonly attribute: (state: RenderState, value: Value, name: string) => Value;
  readonly item: (state: RenderState, value: Value, key: Value) => Value;
};

type Piece = {
  readonly literal: string;
  /** null for trailing literal text. */
  readonly field: { readonly name: string; readonly conversion: string; readonly spec: string } | null;
};

/** One call of `format` or `format_map`. */
export class BraceFormatter {
  readonly #state: RenderState;
  readonly #lookup: FieldLookup;
  readonly #args: readonly Value[];
  readonly #keywords: Keywords | Dict;
  readonly #isMarkup: boolean;
  #nextIndex: number | 'manual' = 0;

  constructor(
    state: RenderState,
    lookup: FieldLookup,
    args: readonly Value[],
    keywords: Keywords | Dict,
    isMarkup: boolean,
  ) {
    this.#state = state;
    this.#lookup = lookup;
    this.#args = args;
    this.#keywords = keywords;
    this.#isMarkup = isMarkup;
  }

  /** Formats a template. Fields may contain fields in their specification, one level deep. */
  format(text: string, depth = 2): string {
    if (depth < 0) return valueError('Max string recursion exceeded');
    let result = '';
    for (const piece of parse(text)) {
      result += piece.literal;
      if (piece.field !== null) result += this.#field(piece.field, depth);
      if (result.length > 64) this.#state.reserve(result.length);
    }
    return this.#state.made(result);
  }

  #field(field: NonNullable<Piece['field']>, depth: number): string {
    const state = this.#state;
    const value = this.#convert(this.#value(field.name), field.conversion);
    const spec = this.format(field.spec, depth - 1);
    if (!this.#isMarkup) return formatValue(state, value, spec);
    if (value instanceof Markup) {
      if (spec !== '') valueError('Unsupported format specification for Markup.');
      return value.text;
    }
    return escapeHtml(state, formatValue(state, value, spec));
  }

  #convert(value: Value, conversion: string): Value {
    switch (conversion) {
      case '':
        return value;
      case 's':
        return toText(this.#state, value);
      case 'r':
        return repr(this.#state, value);
      case 'a':
        return asciiRepr(this.#state, value);
      default:
        return valueError(`Unknown conversion specifier ${conversion}`);
    }
  }

  #value(fieldName: string): Value {
    let name = fieldName;
    const head = /^[^.[]*/.exec(name)![0];
    if (head === '') {
      if (this.#nextIndex === 'manual')
        valueError('cannot switch from manual field specification to automatic field numbering');
      name = String(this.#nextIndex++) + name;
    } else if (/^\d+$/.test(head)) {
      if (typeof this.#nextIndex === 'number' && this.#nextIndex > 0)
        valueError('cannot switch from manual field specification to automatic field numbering');
      this.#nextIndex = 'manual';
    }
    const first = /^[^.[]*/.exec(name)![0];
    let value = this.#first(first);
    let at = first.length;
    while (at < name.length) {
      this.#state.step();
      if (name[at] === '.') {
        const attribute = /[^.[]*/y;
        attribute.lastIndex = at + 1;
        const part = attribute.exec(name)![0];
        if (part === '') valueError('Empty attribute in format string');
        value = this.#lookup.attribute(this.#state, value, part);
        at += part.length + 1;
      } else if (name[at] === '[') {
        const end = name.indexOf(']', at);
        if (end < 0) return valueError("Missing ']' in format string");
        const part = name.slice(at + 1, end);
        if (part === '') valueError('Empty attribute in format string');
        value = this.#lookup.item(this.#state, value, /^\d+$/.test(part) ? Number(part) : part);
        at = end + 1;
      } else {
        return valueError("Only '.' or '[' may follow ']' in format field specifier");
      }
    }
    return value;
  }

  #first(key: string): Value {
    if (/^\d+$/.test(key)) {
      const value = this.#args[Number(key)];
      if (value === undefined)
        throw new PyError('IndexError', `Replacement index ${key} out of range for positional args tuple`);
      return value;
    }
    const value = this.#keywords.get(key);
    if (value === undefined) throw new PyError('KeyError', `'${key}'`);
    return value;
  }
}

/** Splits a template into literal text and fields. */
function* parse(text: string): Generator<Piece> {
  let literal = '';
  let at = 0;
  while (at < text.length) {
    const next = /[{}]/g;
    next.lastIndex = at;
    const match = next.exec(text);
    if (match === null) break;
    literal += text.slice(at, match.index);
    at = match.index + 1;
    if (text[at] === match[0]) {
      literal += match[0];
      at++;
      continue;
    }
    if (match[0] === '}') valueError("Single '}' encountered in format string");
    if (at >= text.length) valueError("Single '{' encountered in format string");
    const end = fieldEnd(text, at);
    yield { literal, field: splitField(text.slice(at, end)) };
    literal = '';
    at = end + 1;
  }
  yield { literal: literal + text.slice(at), field: null };
}

function fieldEnd(text: string, start: number): number {
  let depth = 1;
  for (let at = start; at < text.length; at++) {
    if (text[at] === '{') depth++;
    else if (text[at] === '}' && --depth === 0) return at;
  }
  return valueError("expected '}' before end of string");
}

function splitField(field: string): NonNullable<Piece['field']> {
  let at = 0;
  while (at < field.length && field[at] !== '!' && field[at] !== ':') {
    if (field[at] === '{') valueError("unexpected '{' in field name");
    if (field[at] === '[') {
      const close = field.indexOf(']', at);
      at = close < 0 ? field.length : close;
    } else at++;
  }
  const name = field.slice(0, at);
  if (field[at] !== '!') return { name, conversion: '', spec: field.slice(at + 1) };
  const conversion = field[at + 1];
  if (conversion === undefined) return typeError('end of string while looking for conversion specifier');
  const after = field[at + 2];
  if (after !== undefined && after !== ':') valueError("expected ':' after conversion specifier");
  return { name, conversion, spec: field.slice(at + 3) };
}
