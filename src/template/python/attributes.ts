/** A value and a name -> its attribute or item, by an allow-list per type. Never reads a JavaScript property. */

import { equal } from './compare.ts';
import { stripTags } from './methods/markup-methods.ts';
import { STR_METHODS } from './methods/str-methods.ts';
import { intOf } from './numbers.ts';
import { DictView, Range } from './objects.ts';
import { valueError } from './py-error.ts';
import type { RenderState } from './render-state.ts';
import { sliceBounds } from './slices.ts';
import { Table } from './table.ts';
import { escapeValue, repr } from './text.ts';
import { isPlain } from './unicode.ts';
import {
  BuiltinFunction,
  Dict,
  GroupTuple,
  isList,
  Markup,
  MissingField,
  PyFloat,
  PyObject,
  Tuple,
  textOf,
  typeName,
  Undefined,
  type Value,
} from './values.ts';

/** Attributes of every Python object, hidden by the sandbox. */
const OBJECT_DUNDERS = new Set(
  (
    '__class__ __delattr__ __dir__ __doc__ __eq__ __format__ __ge__ __getattribute__ __getstate__ __gt__ __hash__ ' +
    '__init__ __init_subclass__ __le__ __lt__ __ne__ __new__ __reduce__ __reduce_ex__ __repr__ __setattr__ ' +
    '__sizeof__ __str__ __subclasshook__'
  ).split(' '),
);
/** Further attributes of the built-in containers and of text that are hidden. */
const CONTAINER_DUNDERS = new Set(
  '__add__ __contains__ __getitem__ __iter__ __len__ __mul__ __rmul__'.split(' '),
);

const UNDERSCORE = 95;
/** All attributes of a dict that do not start with an underscore. */
const DICT_METHODS = new Set(
  'clear copy fromkeys get items keys pop popitem setdefault update values'.split(' '),
);
/** Returns true if a name may be an attribute of a dict, which hides an item of that name. */
export function isDictAttribute(name: string): boolean {
  return name.charCodeAt(0) === UNDERSCORE || DICT_METHODS.has(name);
}

const LIST_MUTATORS = new Set('append clear extend insert pop remove reverse sort'.split(' '));
const DICT_MUTATORS = new Set('clear pop popitem setdefault update'.split(' '));

/** Returns the value of an attribute that the sandbox refuses. Any use of it raises. */
function unsafe(value: Value, name: string): Undefined {
  return new Undefined(
    `access to attribute '${name}' of '${typeName(value)}' object is unsafe.`,
    'SecurityError',
  );
}

function missing(state: RenderState, value: Value, key: Value): Undefined {
  const path = state.pathOf(value);
  if (path !== undefined && (typeof key === 'string' || typeof key === 'number'))
    return new MissingField(`${path}.${key}`);
  return new Undefined(() => {
    const kind = value === null ? 'None' : `${typeName(value)} object`;
    if (typeof key === 'string') return `'${kind}' has no attribute '${key}'`;
    return `${kind} has no element ${intOf(key) ?? typeName(key)}`;
  });
}

/** Returns the Python attribute of a value, or undefined if its type has no attribute of that name. */
function attributeOf(state: RenderState, value: Value, name: string): Value | undefined {
  if (name.charCodeAt(0) === UNDERSCORE && hasDunder(value, name)) return unsafe(value, name);
  if (typeof value === 'string') return methodOf(STR_METHODS, value, name);
  if (value instanceof Markup) return methodOf(MARKUP, value, name);
  if (value instanceof Dict)
    return DICT_MUTATORS.has(name) ? unsafe(value, name) : methodOf(DICT, value, name);
  if (isList(value)) {
    if (state.canGrow(value) && GROWING.has(name)) return methodOf(GROWING, value as Value[], name);
    return LIST_MUTATORS.has(name) ? unsafe(value, name) : methodOf(LIST, value, name);
  }
  if (value instanceof GroupTuple && (name === 'grouper' || name === 'list'))
    return value.items[name === 'list' ? 1 : 0]!;
  if (value instanceof Tuple) return methodOf(TUPLE, value, name);
  if (value instanceof Range && TUPLE.has(name)) return methodOf(TUPLE, value.iterate(state), name);
  if (value instanceof PyObject) {
    const found = value.attribute?.(name, state);
    return found !== undefined && name.startsWith('_') ? unsafe(value, name) : found;
  }
  if (value instanceof PyFloat) return name === 'real' ? value : methodOf(FLOAT, value, name);
  const int = intOf(value);
  if (int === undefined) return undefined;
  return name === 'real' ? int : methodOf(INT, int, name);
}

function hasDunder(value: Value, name: string): boolean {
  if (OBJECT_DUNDERS.has(name)) return true;
  if (!CONTAINER_DUNDERS.has(name)) return false;
  return textOf(value) !== undefined || isList(value) || value instanceof Dict || value instanceof Tuple;
}

const MARKUP = new Table<Value, string | Markup>(STR_METHODS)
  .add('striptags', '', (state, self) => stripTags(state, textOf(self)!))
  .add('escape', 's', (state, _self, [item]) => escapeValue(state, item!));

const DICT = new Table<Value, Dict>()
  .add('get', 'key default? /', (_state, dict, [key, fallback]) => {
    const value = dict.get(key!);
    return value === undefined ? (fallback ?? null) : value;
  })
  .add('copy', '', (state, dict) => {
    state.work(dict.size);
    return Dict.from(dict.entries());
  });
for (const name of ['items', 'keys', 'values'] as const)
  DICT.add(name, '', (_state, dict) => new DictView(`dict_${name}`, dict));

const TUPLE = new Table<Value, Tuple | readonly Value[]>()
  .add('index', 'value start? stop? /', (state, self, [value, start, stop]) => {
    const items = itemsOf(self);
    const [from, to] = sliceBounds(items.length, start ?? null, stop ?? null, 1);
    for (let i = from; i < to; i++) if (items[i] === value || equal(state, items[i]!, value!)) return i;
    valueError(`${repr(state, value!)} is not in list`);
  })
  .add(
    'count',
    'value /',
    (state, self, [value]) =>
      itemsOf(self).filter((item) => item === value || equal(state, item, value!)).length,
  );
const LIST = new Table<Value, Tuple | readonly Value[]>(TUPLE).add('copy', '', (state, list) => {
  state.work(itemsOf(list).length);
  return [...itemsOf(list)];
});
/** Methods that change a list which the template made. */
const GROWING = new Table<Value, Value[]>()
  .add('append', 'value /', (state, list, [value]) => {
    state.step();
    list.push(value!);
    return null;
  })
  .add('pop', 'index? /', (state, list, [index = -1]) => {
    state.work(list.length);
    const at = Number(intOf(index));
    const place = at < 0 ? at + list.length : at;
    if (!(place >= 0 && place < list.length)) valueError('pop index out of range');
    return list.splice(place, 1)[0]!;
  });

function itemsOf(value: Tuple | readonly Value[]): readonly Value[] {
  return value instanceof Tuple ? value.items : value;
}

const INT = new Table().add(
  'bit_length',
  '',
  (_state, int) =>
    BigInt(intOf(int)!)
      .toString(2)
      .replace(/^-|^0$/, '').length,
);
const FLOAT = new Table<Value, PyFloat>().add('is_integer', '', (_state, { value }) =>
  Number.isInteger(value),
);

function methodOf<Self extends Value>(
  methods: Table<Value, Self>,
  self: Self,
  name: string,
): Value | undefined {
  const method = methods.get(name);
  return method && new BuiltinFunction(name, (state, args, keywords) => method(state, self, args, keywords));
}

/** Returns `value.name`: the attribute, otherwise the item. */
export function getAttribute(state: RenderState, value: Value, name: string): Value {
  if (value instanceof Dict && !isDictAttribute(name)) {
    const item = value.get(name); // the most common access
    return item === undefined ? missing(state, value, name) : item;
  }
  if (value instanceof PyObject && name.charCodeAt(0) !== UNDERSCORE) {
    const found = value.attribute?.(name, state);
    if (found !== undefined) return found;
  }
  if (value instanceof Undefined) return OBJECT_DUNDERS.has(name) ? unsafe(value, name) : value.fail();
  const attribute = attributeOf(state, value, name);
  if (attribute !== undefined) return attribute;
  const item = itemOf(state, value, name);
  return item === undefined ? missing(state, value, name) : item;
}

/** Returns `value[key]`: the item, otherwise the attribute. */
export function getItem(state: RenderState, value: Value, key: Value): Value {
  if (value instanceof Undefined) return value.fail();
  const item = itemOf(state, value, key);
  if (item !== undefined) return item;
  const name = textOf(key);
  if (name !== undefined) {
    const attribute = attributeOf(state, value, name);
    if (attribute !== undefined) return attribute;
  }
  return missing(state, value, key);
}

function itemOf(state: RenderState, value: Value, key: Value): Value | undefined {
  if (value instanceof Dict) return isList(key) || key instanceof Dict ? undefined : value.get(key);
  const index = typeof key === 'number' ? key : intOf(key);
  if (isList(value)) return index === undefined ? undefined : value.at(Number(index));
  if (value instanceof Tuple) return index === undefined ? undefined : value.items.at(Number(index));
  const text = textOf(value);
  if (text !== undefined) {
    if (index === undefined) return undefined;
    const char = characterAt(state, text, Number(index));
    return char !== undefined && value instanceof Markup ? new Markup(char) : char;
  }
  return value instanceof PyObject ? value.item?.(key) : undefined;
}

function characterAt(state: RenderState, text: string, index: number): string | undefined {
  state.scan(text.length);
  return isPlain(text) ? text.at(index) : [...text].at(index);
}

/** Returns the attribute of a value, without looking for an item. Used by the filter `attr`. */
export function getPlainAttribute(state: RenderState, value: Value, name: string): Value {
  if (value instanceof Undefined) return value.fail();
  const attribute = attributeOf(state, value, name);
  return attribute === undefined ? missing(state, value, name) : attribute;
}
