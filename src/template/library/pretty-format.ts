/** A value -> text of pprint: lines of at most 80 columns if possible, with sorted dict keys. */
import { order } from '../python/compare.ts';
import { isKind } from '../python/py-error.ts';
import type { RenderState } from '../python/render-state.ts';
import { repr } from '../python/text.ts';
import { codePointLength } from '../python/unicode.ts';
import { Dict, isList, Tuple, typeName, type Value } from '../python/values.ts';

const WIDTH = 80;

/** `pprint.pformat(value)`. */
export function prettyFormat(state: RenderState, value: Value): string {
  return state.made(layOut(state, value, 0, 0));
}

/** `indent`: columns before the value; `allowance`: columns needed after it. */
function layOut(state: RenderState, value: Value, indent: number, allowance: number): string {
  const flat = repr(state, sortKeys(state, value));
  if (codePointLength(flat) <= WIDTH - indent - allowance) return flat;
  state.enter();
  const text = nested(state, value, flat, indent, allowance);
  state.leave();
  return text;
}

function nested(state: RenderState, value: Value, flat: string, indent: number, allowance: number): string {
  const glue = `,\n${' '.repeat(indent + 1)}`;
  if (value instanceof Dict) {
    const keys = sortedKeys(state, value);
    const rows = keys.map((key, index) => {
      const label = repr(state, key);
      const behind = index === keys.length - 1 ? allowance + 1 : 1;
      return `${label}: ${layOut(state, value.get(key)!, indent + codePointLength(label) + 3, behind)}`;
    });
    return `{${rows.join(glue)}}`;
  }
  const items = isList(value) ? value : value instanceof Tuple ? value.items : undefined;
  if (items === undefined) return flat;
  const [open, close] = isList(value) ? ['[', ']'] : ['(', items.length === 1 ? ',)' : ')'];
  const rows = items.map((item, index) =>
    layOut(state, item, indent + 1, index === items.length - 1 ? allowance + close!.length : 1),
  );
  return open + rows.join(glue) + close;
}

/** Sorted keys; keys of types without an order are sorted by type. */
function sortedKeys(state: RenderState, dict: Dict): Value[] {
  return [...dict.keys()].sort((a, b) => {
    try {
      return order(state, '<', a, b) ? -1 : order(state, '<', b, a) ? 1 : 0;
    } catch (error) {
      if (!isKind(error, 'TypeError')) throw error;
      return typeName(a) < typeName(b) ? -1 : 1;
    }
  });
}

function sortKeys(state: RenderState, value: Value): Value {
  state.step();
  if (isList(value)) return value.map((item) => sortKeys(state, item));
  if (value instanceof Tuple) return new Tuple(value.items.map((item) => sortKeys(state, item)));
  if (!(value instanceof Dict)) return value;
  return Dict.from(sortedKeys(state, value).map((key) => [key, sortKeys(state, value.get(key)!)] as const));
}
