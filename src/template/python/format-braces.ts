/** A template of braces and arguments -> text of `str.format`. The caller passes the sandboxed lookups of fields. */
import { formatValue } from './format-spec.ts';
import { PyError, typeError, valueError } from './py-error.ts';
import type { RenderState } from './render-state.ts';
import { asciiRepr, escapeHtml, repr, toText } from './text.ts';
import { type Keywords, Markup, type Value } from './values.ts';

/** Looks up an attribute or item of a field. */
type FieldLookup = {
  readonly attribute: (state: RenderState, value: Value, name: string) => Value;
  readonly item: (state: RenderState, value: Value, key: Value) => Value;
};

type Piece = {
  readonly literal: string;
  /** null for trailing literal text. */
  readonly field: { readonly name: string; readonly conversion: string; readonly spec: string } | null;
};

/** What fields can name: the arguments of `format`, and the sandboxed lookups of their attributes and items. */
type FieldSource = {
  readonly lookup: FieldLookup;
  readonly args: readonly Value[];
  readonly keywords: Keywords | null;
  readonly isMarkup: boolean;
};

/** `text.format(...)`. Fields may contain fields in their specification, one level deep. */
export function formatBraces(state: RenderState, text: string, source: FieldSource): string {
  let nextIndex: number | 'manual' = 0;
  /** A field's name with the number of its argument. */
  const numbered = (name: string): string => {
    const isAutomatic = /^(?:[.[]|$)/.test(name);
    if (!isAutomatic && !/^\d+(?:[.[]|$)/.test(name)) return name;
    if (isAutomatic ? nextIndex === 'manual' : typeof nextIndex === 'number' && nextIndex > 0)
      valueError('cannot switch from manual field specification to automatic field numbering');
    if (isAutomatic) return `${(nextIndex as number)++}${name}`;
    nextIndex = 'manual';
    return name;
  };
  const write = (part: string, depth: number): string => {
    if (depth < 0) return valueError('Max string recursion exceeded');
    let result = '';
    for (const { literal, field } of parse(part)) {
      result += literal;
      if (field !== null) result += writeField(field, depth);
      if (result.length > 64) state.reserve(result.length);
    }
    return state.made(result);
  };
  const writeField = (field: NonNullable<Piece['field']>, depth: number): string => {
    const value = convert(state, findField(state, numbered(field.name), source), field.conversion);
    const spec = write(field.spec, depth - 1);
    if (!source.isMarkup) return formatValue(state, value, spec);
    if (!(value instanceof Markup)) return escapeHtml(state, formatValue(state, value, spec));
    return spec === '' ? value.text : valueError('Unsupported format specification for Markup.');
  };
  return write(text, 2);
}

function convert(state: RenderState, value: Value, conversion: string): Value {
  switch (conversion) {
    case '':
      return value;
    case 's':
      return toText(state, value);
    case 'r':
      return repr(state, value);
    case 'a':
      return asciiRepr(state, value);
    default:
      return valueError(`Unknown conversion specifier ${conversion}`);
  }
}

/** The value of a field such as `0.name[key]`. */
function findField(state: RenderState, name: string, { lookup, args, keywords }: FieldSource): Value {
  const key = /^[^.[]*/.exec(name)![0];
  const isIndex = /^\d+$/.test(key);
  let value = isIndex ? args[Number(key)] : keywords?.get(key);
  if (value === undefined)
    throw new PyError(isIndex ? 'IndexError' : 'KeyError', `format has no argument '${key}'`);
  const step = /\.([^.[]*)|\[([^\]]*)\]/y;
  for (step.lastIndex = key.length; step.lastIndex < name.length; ) {
    state.step();
    const [, attribute, item] = step.exec(name) ?? valueError(`invalid format field '${name.slice(0, 100)}'`);
    if (attribute === '' || item === '') valueError('Empty attribute in format string');
    if (attribute !== undefined) value = lookup.attribute(state, value, attribute);
    else value = lookup.item(state, value, /^\d+$/.test(item!) ? Number(item) : item!);
  }
  return value;
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
