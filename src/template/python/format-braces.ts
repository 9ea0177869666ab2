/** A template of braces and arguments -> text of `str.format`. */
import { formatValue } from './format-spec.ts';
import { PyError, valueError } from './py-error.ts';
import type { RenderState } from './render-state.ts';
import { escapeHtml, replaceEach, repr, toText } from './text.ts';
import { type Callee, Markup, textOf, type Value } from './values.ts';

/** A doubled brace, a field `{name!conversion:spec}` whose specification may have fields, or a single brace. */
const PIECE = /\{\{|\}\}|\{([^{}!:]*)(?:!([^{}:]*))?(?::((?:[^{}]|\{[^{}]*\})*))?\}|[{}]/g;

/** `text.format(...)`. Markup escapes what it puts in. */
export function formatBraces(
  state: RenderState,
  self: string | Markup,
  [args, keywords]: readonly [Parameters<Callee>[1], Parameters<Callee>[2]],
): Value {
  const isMarkup = self instanceof Markup;
  let nextIndex: number | 'manual' = 0;
  const find = (name: string): Value => {
    if (/[.[]/.test(name))
      return valueError(
        `the field {${name.slice(0, 100)}} is not supported in chat templates: it may have a name only`,
      );
    const isIndex = /^\d*$/.test(name);
    if (isIndex && (name === '' ? nextIndex === 'manual' : nextIndex !== 'manual' && nextIndex > 0))
      valueError('cannot switch between manual field specification and automatic field numbering');
    const index: number = name === '' ? (nextIndex as number) : Number(name);
    if (isIndex) nextIndex = name === '' ? index + 1 : 'manual';
    const value = isIndex ? args[index] : keywords?.get(name);
    if (value !== undefined) return value;
    throw new PyError(
      isIndex ? 'IndexError' : 'KeyError',
      `format has no argument '${isIndex ? index : name}'`,
    );
  };
  const write = (text: string): string =>
    replaceEach(state, text, PIECE, ([piece, name, conversion, spec = '']) => {
      if (name !== undefined) return format(convert(state, find(name), conversion), write(spec));
      return piece.length === 2 ? piece[0]! : valueError(`Single '${piece}' encountered in format string`);
    });
  const format = (value: Value, spec: string): string => {
    if (!isMarkup) return formatValue(state, value, spec);
    if (!(value instanceof Markup)) return escapeHtml(state, formatValue(state, value, spec));
    return spec === '' ? value.text : valueError('Unsupported format specification for Markup.');
  };
  const result = write(textOf(self)!);
  return isMarkup ? new Markup(result) : result;
}

function convert(state: RenderState, value: Value, conversion: string | undefined): Value {
  if (conversion === undefined) return value;
  if (conversion === 's') return toText(state, value);
  return conversion === 'r' ? repr(state, value) : valueError(`Unknown conversion specifier ${conversion}`);
}
