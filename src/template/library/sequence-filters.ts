/** A sequence or mapping -> the result of a filter, lazy if Jinja2's is a generator. */
import { getItem, getPlainAttribute } from '../python/attributes.ts';
import { equal, order, sortBy, truth } from '../python/compare.ts';
import { iterate, length, toList, tryReversed } from '../python/iterate.ts';
import { countOf } from '../python/numbers.ts';
import { LazySequence } from '../python/objects.ts';
import { add } from '../python/operators.ts';
import { PyError, typeError, valueError } from '../python/py-error.ts';
import type { RenderState } from '../python/render-state.ts';
import { getSlice } from '../python/slices.ts';
import { type Applied, Table } from '../python/table.ts';
import { toText } from '../python/text.ts';
import {
  Dict,
  GroupTuple,
  isList,
  type Keywords,
  Markup,
  Tuple,
  textOf,
  typeName,
  Undefined,
  type Value,
} from '../python/values.ts';
import { NUMBER_FILTERS } from './number-filters.ts';
import { TESTS } from './tests.ts';
import { TEXT_FILTERS } from './text-filters.ts';

/** Name -> filter, for all filters. Those of the other files are added here. */
export const FILTERS = new Table([...TEXT_FILTERS, ...NUMBER_FILTERS]);

type Getter = (item: Value) => Value;

/** Returns the path of an attribute argument: 'a.b.0' has three levels. */
function pathOf(attribute: Value | undefined): readonly Value[] {
  if (attribute === undefined || attribute === null) return [];
  const text = textOf(attribute);
  if (text === undefined) return [attribute];
  return text.split('.').map((part) => (/^\p{Nd}+$/u.test(part) ? Number(part) : part));
}

function getter(state: RenderState, attribute: Value | undefined, fallback: Value = null): Getter {
  const path = pathOf(attribute);
  state.work(path.length);
  return (item) => {
    let value = item;
    state.work(path.length);
    for (const part of path) {
      value = getItem(state, value, part);
      if (fallback !== null && value instanceof Undefined) value = fallback;
    }
    return value;
  };
}

function ignoreCase(value: Value): Value {
  if (typeof value === 'string') return value.toLowerCase();
  return value instanceof Markup ? new Markup(value.text.toLowerCase()) : value;
}

function caseGetter(
  state: RenderState,
  attribute: Value | undefined,
  caseSensitive: Value | undefined,
  fallback?: Value,
): Getter {
  const get = getter(state, attribute, fallback);
  return caseSensitive !== undefined && truth(state, caseSensitive) ? get : (item) => ignoreCase(get(item));
}

function isTrue(state: RenderState, value: Value | undefined): boolean {
  return value !== undefined && truth(state, value);
}

type Items = (...given: Parameters<Applied>) => Generator<Value>;

/** Adds a filter whose items are computed on demand, as with Jinja2's generators. */
function addLazy(
  name: string,
  parameters: string,
  items: (state: RenderState, value: Value, args: readonly (Value | undefined)[]) => Generator<Value>,
): void {
  FILTERS.add(name, parameters, (state, value, args) => new LazySequence(items(state, value, args)));
}

FILTERS.add('length count', '', (state, value) => length(state, value));
FILTERS.add('list', '', (state, value) => toList(state, value));
FILTERS.add('first', '', (state, value) => {
  for (const item of iterate(state, value)) return item;
  return new Undefined('No first item, sequence was empty.');
});
FILTERS.add('last', '', (state, value) => {
  const items = tryReversed(state, value);
  if (items === undefined) return typeError(`'${typeName(value)}' object is not reversible`);
  for (const item of items) return item;
  return new Undefined('No last item, sequence was empty.');
});
FILTERS.add('reverse', '', (state, value) => {
  if (textOf(value) !== undefined) return getSlice(state, value, null, null, -1);
  const items = tryReversed(state, value);
  if (items === undefined) return toList(state, value).reverse();
  return new LazySequence(items, isList(value) ? 'list_reverseiterator' : 'reversed');
});
/** The filter is deterministic, unlike in Jinja2: the same render makes the same choice. */
FILTERS.add('random', '', (state, value) => {
  const count = length(state, value);
  if (count === 0) return new Undefined('No random item, sequence was empty.');
  return getItem(state, value, (count * 7 + 3) % count);
});

FILTERS.add('join', 'd? attribute?', (state, value, [separator, attribute]) => {
  const get = getter(state, attribute);
  const parts: string[] = [];
  let size = 0;
  const glue = separator === undefined ? '' : toText(state, separator);
  for (const item of iterate(state, value)) {
    state.step();
    const part = toText(state, get(item));
    size += part.length + glue.length;
    if (size > state.limits.maxValueCharacters + glue.length) state.reserve(size);
    parts.push(part);
  }
  return state.made(parts.join(glue));
});

FILTERS.add('default d', 'default_value? boolean?', (state, value, [fallback, boolean]) => {
  const isAbsent = value instanceof Undefined || (isTrue(state, boolean) && !truth(state, value));
  if (!isAbsent) return value;
  return fallback === undefined ? '' : fallback;
});
FILTERS.add('attr', 'name', (state, value, [name]) => {
  const text = textOf(name!);
  if (text === undefined) return typeError('attribute name must be string');
  return getPlainAttribute(state, value, text);
});

addLazy('items', '', function* (_state, value) {
  if (value instanceof Undefined) return;
  if (!(value instanceof Dict)) return typeError('Can only get item pairs from a mapping.');
  for (const entry of value.entries()) yield new Tuple(entry);
});
FILTERS.add('dictsort', 'case_sensitive? by? reverse?', (state, value, [caseSensitive, by, reverse]) => {
  const side = by === undefined ? 'key' : textOf(by);
  if (side !== 'key' && side !== 'value') return valueError('You can only sort by either "key" or "value"');
  if (value instanceof Undefined) value.fail();
  if (!(value instanceof Dict)) return typeError(`'${typeName(value)}' object has no attribute 'items'`);
  const position = side === 'key' ? 0 : 1;
  state.work(value.size);
  const pairs = Array.from(value.entries(), (entry) => new Tuple(entry));
  const key = (pair: Value): Value => {
    const part = (pair as Tuple).items[position]!;
    return isTrue(state, caseSensitive) ? part : ignoreCase(part);
  };
  return sortBy(state, pairs, key, isTrue(state, reverse));
});
FILTERS.add(
  'sort',
  'reverse? case_sensitive? attribute?',
  (state, value, [reverse, caseSensitive, attribute]) => {
    const text = attribute === undefined || attribute === null ? undefined : textOf(attribute);
    const attributes = text === undefined ? [attribute] : text.split(',');
    const getters = attributes.map((part) => caseGetter(state, part, caseSensitive));
    // The key is a list even for one attribute, so that equal keys of a type without order do not raise.
    return sortBy(
      state,
      toList(state, value),
      (item) => getters.map((get) => get(item)),
      isTrue(state, reverse),
    );
  },
);
FILTERS.add(
  'groupby',
  'attribute default? case_sensitive?',
  (state, value, [attribute, fallback, caseSensitive]) => {
    const key = caseGetter(state, attribute, caseSensitive, fallback);
    const original = getter(state, attribute, fallback);
    const groups: { key: Value; items: Value[] }[] = [];
    for (const item of sortBy(state, toList(state, value), key)) {
      const itemKey = key(item);
      const last = groups.at(-1);
      if (last !== undefined && (last.key === itemKey || equal(state, last.key, itemKey)))
        last.items.push(item);
      else groups.push({ key: itemKey, items: [item] });
    }
    return groups.map(({ items }) => new GroupTuple([original(items[0]!), items]));
  },
);
addLazy('unique', 'case_sensitive? attribute?', function* (state, value, [caseSensitive, attribute]) {
  const key = caseGetter(state, attribute, caseSensitive);
  const seen = new Dict();
  for (const item of iterate(state, value)) {
    state.step();
    const itemKey = key(item);
    if (seen.has(itemKey)) continue;
    seen.set(itemKey, true);
    yield item;
  }
});

for (const [name, operator] of [
  ['min', '<'],
  ['max', '>'],
] as const)
  FILTERS.add(name, 'case_sensitive? attribute?', (state, value, [caseSensitive, attribute]) => {
    const key = caseGetter(state, attribute, caseSensitive);
    let best: { item: Value; key: Value } | null = null;
    for (const item of iterate(state, value)) {
      const itemKey = key(item);
      if (best === null || order(state, operator, itemKey, best.key)) best = { item, key: itemKey };
    }
    return best === null ? new Undefined('No aggregated item, sequence was empty.') : best.item;
  });
FILTERS.add('sum', 'attribute? start?', (state, value, [attribute, start]) => {
  const get = getter(state, attribute);
  let total: Value = start === undefined ? 0 : start;
  if (textOf(total) !== undefined) return typeError("sum() can't sum strings [use ''.join(seq) instead]");
  for (const item of iterate(state, value)) {
    state.step();
    total = add(state, total, get(item));
  }
  return total;
});

addLazy('batch', 'linecount fill_with?', function* (state, value, [size, fill]) {
  let row: Value[] = [];
  for (const item of iterate(state, value)) {
    state.step();
    if (equal(state, row.length, size!)) {
      yield row;
      row = [];
    }
    row.push(item);
  }
  if (row.length === 0) return;
  const missing = fill === undefined || fill === null ? 0 : countOf(size!) - row.length;
  state.work(Math.max(0, missing));
  for (let i = 0; i < missing; i++) row.push(fill!);
  yield row;
});
addLazy('slice', 'slices fill_with?', function* (state, value, [slices, fill]) {
  const items = toList(state, value);
  const count = countOf(slices!);
  if (count === 0) throw new PyError('ZeroDivisionError', 'integer division or modulo by zero');
  const perSlice = Math.floor(items.length / count);
  const longer = items.length - perSlice * count;
  for (let i = 0; i < count; i++) {
    state.step();
    const start = i * perSlice + Math.min(i, longer);
    const part = items.slice(start, start + perSlice + (i < longer ? 1 : 0));
    if (fill !== undefined && fill !== null && i >= longer) part.push(fill);
    yield part;
  }
});

function mapper(state: RenderState, args: readonly Value[], keywords: Keywords | null): Getter {
  const attribute = keywords?.get('attribute');
  if (args.length === 0 && attribute !== undefined) {
    for (const key of keywords!.keys())
      if (key !== 'attribute' && key !== 'default') typeError(`Unexpected keyword argument '${key}'`);
    return getter(state, attribute, keywords!.get('default'));
  }
  const [name, ...rest] = args;
  if (name === undefined) return typeError('map requires a filter argument');
  const filter = FILTERS.get(textOf(name) ?? '');
  if (filter === undefined) throw new PyError('RuntimeError', `No filter named '${toText(state, name)}'.`);
  return (item) => filter(state, item, rest, keywords);
}
const map: Items = function* (state, value, args, keywords) {
  if (!truth(state, value)) return;
  const change = mapper(state, args, keywords);
  for (const item of iterate(state, value)) {
    state.step();
    yield change(item);
  }
};

const select = (wanted: boolean, byAttribute: boolean): Items =>
  function* (state, value, args, keywords) {
    if (!truth(state, value)) return;
    if (byAttribute && args.length === 0) typeError('Missing parameter for attribute name');
    const get: Getter = byAttribute ? getter(state, args[0]) : (item) => item;
    const [name, ...rest] = byAttribute ? args.slice(1) : args;
    const test = name === undefined ? truth : TESTS.get(textOf(name) ?? '');
    if (test === undefined) throw new PyError('RuntimeError', `No test named '${toText(state, name!)}'.`);
    for (const item of iterate(state, value)) {
      state.step();
      if (test(state, get(item), rest, keywords) === wanted) yield item;
    }
  };
for (const [name, items] of [
  ['map', map],
  ['select', select(true, false)],
  ['reject', select(false, false)],
  ['selectattr', select(true, true)],
  ['rejectattr', select(false, true)],
] as const)
  FILTERS.set(name, (...given) => new LazySequence(items(...given)));
