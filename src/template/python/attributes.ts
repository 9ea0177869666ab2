/** A value and a name -> its attribute or item, by an allow-list per type. Never reads a JavaScript property. */

import { bind, signature } from './calls.ts';
import { equal } from './compare.ts';
import { formatBraces } from './format-braces.ts';
import { stripTags } from './methods/markup-methods.ts';
import { callStrMethod, STR_METHODS } from './methods/str-methods.ts';
import { type Int, intOf } from './numbers.ts';
import { DictView } from './objects.ts';
import { isKind, typeError, valueError } from './py-error.ts';
import type { RenderState } from './render-state.ts';
import { sliceBounds } from './slices.ts';
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
/** Further hidden attributes of the built-in containers and of text. */
const CONTAINER_DUNDERS = new Set(
  '__add__ __contains__ __getitem__ __iter__ __len__ __mul__ __rmul__'.split(' '),
);

const UNDERSCORE = 95;
/** Every attribute of a dict that does not start with an underscore. */
const DICT_METHODS = new Set(
  'clear copy fromkeys get items keys pop popitem setdefault update values'.split(' '),
);
/** Whether a name may be an attribute of a dict, which hides an item of that name. */
export function isDictAttribute(name: string): boolean {
  return name.charCodeAt(0) === UNDERSCORE || DICT_METHODS.has(name);
}

const LIST_MUTATORS = new Set('append clear extend insert pop remove reverse sort'.split(' '));
const DICT_MUTATORS = new Set('clear pop popitem setdefault update'.split(' '));

/** The value of an attribute that the sandbox refuses. Any use raises. */
function unsafe(value: Value, name: string): Undefined {
  return new Undefined(
    `access to attribute '${name}' of '${typeName(value)}' object is unsafe.`,
    'SecurityError',
  );
}

/** The value of a missing attribute or item. */
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

/** The Python attribute of a value, or undefined if its type has none of that name. */
function attributeOf(state: RenderState, value: Value, name: string): Value | undefined {
  if (name.charCodeAt(0) === UNDERSCORE && hasDunder(value, name)) return unsafe(value, name);
  const text = textOf(value);
  if (text !== undefined) return textAttribute(value as string | Markup, name);
  if (value instanceof Dict) return dictAttribute(value, name);
  if (isList(value)) return listAttribute(state, value, name);
  if (value instanceof Tuple) return tupleAttribute(value, name);
  if (value instanceof PyObject) {
    const found = value.attribute(name, state);
    return found !== undefined && name.startsWith('_') ? unsafe(value, name) : found;
  }
  if (value instanceof PyFloat) return floatAttribute(value, name);
  const int = intOf(value);
  return int === undefined ? undefined : intAttribute(int, name);
}

function hasDunder(value: Value, name: string): boolean {
  if (OBJECT_DUNDERS.has(name)) return true;
  if (!CONTAINER_DUNDERS.has(name)) return false;
  return textOf(value) !== undefined || isList(value) || value instanceof Dict || value instanceof Tuple;
}

function textAttribute(value: string | Markup, name: string): Value | undefined {
  const method = STR_METHODS.get(name);
  if (method !== undefined)
    return new BuiltinFunction(name, (inner, args, keywords) =>
      callStrMethod(inner, method, value, args, keywords),
    );
  if (name === 'format') return formatMethod(value);
  if (value instanceof Markup) {
    if (name === 'striptags') return new BuiltinFunction(name, (inner) => stripTags(inner, value.text));
    if (name === 'escape')
      return new BuiltinFunction(name, (inner, [item]) => escapeValue(inner, item ?? null));
  }
  return undefined;
}

function formatMethod(value: string | Markup): Value {
  return new BuiltinFunction('format', (state, args, keywords) => {
    const isMarkup = value instanceof Markup;
    const lookup = { attribute: getAttribute, item: getItem };
    const result = formatBraces(state, textOf(value)!, { lookup, args, keywords, isMarkup });
    return isMarkup ? new Markup(result) : result;
  });
}

const GET = signature('get', 'key default? /');

function dictAttribute(dict: Dict, name: string): Value | undefined {
  switch (name) {
    case 'get':
      return new BuiltinFunction(name, (_state, args, keywords) => {
        const [key, fallback] = bind(GET, args, keywords);
        return dict.get(key!) ?? (dict.has(key!) ? null : (fallback ?? null));
      });
    case 'items':
    case 'keys':
    case 'values':
      return new BuiltinFunction(
        name,
        noArguments(() => new DictView(`dict_${name}`, dict)),
      );
    case 'copy':
      return new BuiltinFunction(
        name,
        noArguments((state) => {
          state.work(dict.size);
          return Dict.from(dict.entries());
        }),
      );
    default:
      return DICT_MUTATORS.has(name) ? unsafe(dict, name) : undefined;
  }
}

function noArguments(body: (state: RenderState) => Value) {
  return (state: RenderState, args: readonly Value[], keywords: ReadonlyMap<string, Value> | null): Value => {
    if (args.length > 0 || (keywords?.size ?? 0) > 0) return typeError('the method takes no arguments');
    return body(state);
  };
}

const APPEND = signature('append', 'value /');
const POP = signature('pop', 'index? /');

/** Whether `list` is inside a value: appended to itself it would have no end. */
function holds(state: RenderState, value: Value, list: readonly Value[]): boolean {
  if (value === list) return true;
  const inner = isList(value)
    ? value
    : value instanceof Tuple
      ? value.items
      : value instanceof Dict
        ? [...value.values()]
        : [];
  state.enter();
  state.work(inner.length);
  const found = inner.some((item) => holds(state, item, list));
  state.leave();
  return found;
}

/** The methods that change a list which the template made. */
function growingAttribute(list: Value[], name: string): Value | undefined {
  if (name === 'append')
    return new BuiltinFunction(name, (state, args, keywords) => {
      const value = bind(APPEND, args, keywords)[0]!;
      if (holds(state, value, list)) valueError('a list cannot be appended to itself');
      state.step();
      list.push(value);
      return null;
    });
  if (name === 'pop')
    return new BuiltinFunction(name, (state, args, keywords) => {
      const index = intOf(bind(POP, args, keywords)[0] ?? -1);
      state.work(list.length);
      const at = Number(index ?? Number.NaN);
      const [item] = list.splice(
        at < 0 ? at + list.length : at,
        Number.isInteger(at) && at >= -list.length ? 1 : 0,
      );
      return item === undefined ? valueError('pop index out of range') : item;
    });
  return undefined;
}

function listAttribute(state: RenderState, list: readonly Value[], name: string): Value | undefined {
  if (state.canGrow(list)) {
    const method = growingAttribute(list as Value[], name);
    if (method !== undefined) return method;
  }
  if (name === 'copy')
    return new BuiltinFunction(
      name,
      noArguments((state) => {
        state.work(list.length);
        return [...list];
      }),
    );
  return LIST_MUTATORS.has(name) ? unsafe(list, name) : sequenceAttribute(list, name);
}

function tupleAttribute(tuple: Tuple, name: string): Value | undefined {
  if (tuple instanceof GroupTuple) {
    if (name === 'grouper') return tuple.items[0]!;
    if (name === 'list') return tuple.items[1]!;
  }
  return sequenceAttribute(tuple.items, name);
}

const COUNT = signature('count', 'value /');
const INDEX = signature('index', 'value start? stop? /');

function sequenceAttribute(items: readonly Value[], name: string): Value | undefined {
  if (name === 'index')
    return new BuiltinFunction(name, (state, args, keywords) => {
      const [value, start, stop] = bind(INDEX, args, keywords);
      const [from, to] = sliceBounds(items.length, start ?? null, stop ?? null, 1);
      for (let i = from; i < to; i++) if (items[i] === value || equal(state, items[i]!, value!)) return i;
      valueError(`${repr(state, value!)} is not in list`);
    });
  if (name === 'count')
    return new BuiltinFunction(name, (state, args, keywords) => {
      const value = bind(COUNT, args, keywords)[0]!;
      return items.filter((item) => item === value || equal(state, item, value)).length;
    });
  return undefined;
}

function intAttribute(int: Int, name: string): Value | undefined {
  if (name === 'real') return int;
  if (name === 'imag') return 0;
  if (name !== 'bit_length') return undefined;
  return new BuiltinFunction(name, () => (int === 0 ? 0 : (int < 0 ? -int : int).toString(2).length));
}

function floatAttribute(float: PyFloat, name: string): Value | undefined {
  if (name === 'real') return float;
  if (name === 'imag') return new PyFloat(0);
  if (name !== 'is_integer') return undefined;
  return new BuiltinFunction(name, () => Number.isInteger(float.value));
}

/** `value.name`: the attribute first, then the item. */
export function getAttribute(state: RenderState, value: Value, name: string): Value {
  if (value instanceof Dict && !isDictAttribute(name)) {
    const item = value.get(name); // the most common access
    return item === undefined ? missing(state, value, name) : item;
  }
  if (value instanceof PyObject && name.charCodeAt(0) !== UNDERSCORE) {
    const found = value.attribute(name, state);
    if (found !== undefined) return found;
  }
  if (value instanceof Undefined) return OBJECT_DUNDERS.has(name) ? unsafe(value, name) : value.fail();
  const attribute = attributeOf(state, value, name);
  if (attribute !== undefined) return attribute;
  const item = itemOf(state, value, name);
  return item === undefined ? missing(state, value, name) : item;
}

/** `value[key]`: the item first, then the attribute. */
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
  if (value instanceof Dict) {
    try {
      return value.get(key);
    } catch (error) {
      if (isKind(error, 'TypeError')) return undefined; // an unhashable key
      throw error;
    }
  }
  const index = typeof key === 'number' ? key : intOf(key);
  if (isList(value)) return index === undefined ? undefined : value.at(Number(index));
  if (value instanceof Tuple) return index === undefined ? undefined : value.items.at(Number(index));
  const text = textOf(value);
  if (text !== undefined) {
    if (index === undefined) return undefined;
    const char = characterAt(state, text, Number(index));
    return char !== undefined && value instanceof Markup ? new Markup(char) : char;
  }
  return value instanceof PyObject ? value.item(key, state) : undefined;
}

function characterAt(state: RenderState, text: string, index: number): string | undefined {
  state.scan(text.length);
  return isPlain(text) ? text.at(index) : [...text].at(index);
}

/** Whether `value` has the attribute; items do not count. For the filter `attr`. */
export function getPlainAttribute(state: RenderState, value: Value, name: string): Value {
  if (value instanceof Undefined) return value.fail();
  const attribute = attributeOf(state, value, name);
  return attribute === undefined ? missing(state, value, name) : attribute;
}
