/** A name -> the global function: range, dict, namespace, cycler, joiner, raise_exception, strftime_now. */
import { bind, signature } from '../python/calls.ts';
import { iterate, toList } from '../python/iterate.ts';
import { indexOf } from '../python/numbers.ts';
import { Cycler, Joiner, Namespace, Range } from '../python/objects.ts';
import { PyError, typeError, valueError } from '../python/py-error.ts';
import type { RenderState } from '../python/render-state.ts';
import { toText } from '../python/text.ts';
import {
  BuiltinFunction,
  Dict,
  type Keywords,
  PyObject,
  textOf,
  typeName,
  Undefined,
  type Value,
} from '../python/values.ts';
import { MAX_GROWTH, strftime } from './strftime.ts';

type Body = (state: RenderState, args: readonly Value[], keywords: Keywords | null) => Value;

function makeRange(state: RenderState, args: readonly Value[], keywords: Keywords | null): Value {
  if ((keywords?.size ?? 0) > 0) return typeError('range() takes no keyword arguments');
  if (args.length === 0) return typeError('range expected at least 1 argument, got 0');
  if (args.length > 3) return typeError(`range expected at most 3 arguments, got ${args.length}`);
  const numbers = args.map((arg) => {
    if (arg instanceof Undefined) return typeError("'Undefined' object cannot be interpreted as an integer");
    if (typeof arg === 'bigint')
      throw new PyError('OverflowError', 'range() arguments beyond 2 ** 53 are not supported');
    return indexOf(arg, () => `'${typeName(arg)}' object cannot be interpreted as an integer`);
  });
  const [start, stop, step] =
    numbers.length === 1 ? [0, numbers[0]!, 1] : [numbers[0]!, numbers[1]!, numbers[2] ?? 1];
  if (step === 0) valueError('range() arg 3 must not be zero');
  const range = new Range(start!, stop!, step!);
  const limit = state.limits.maxRangeLength;
  if (range.count > limit)
    throw new PyError(
      'OverflowError',
      `Range too big. The sandbox blocks ranges larger than MAX_RANGE (${limit}).`,
    );
  return range;
}

/** `dict(...)` of a dict or pairs, and keywords. */
function makeDict(state: RenderState, args: readonly Value[], keywords: Keywords | null): Dict {
  if (args.length > 1) return typeError(`dict expected at most 1 argument, got ${args.length}`);
  const dict = new Dict();
  const [source] = args;
  if (source instanceof Dict) {
    state.work(source.size);
    for (const [key, value] of source.entries()) dict.set(key, value);
  } else if (source !== undefined) {
    let index = 0;
    for (const item of iterate(state, source)) {
      const pair = toList(state, item);
      if (pair.length !== 2)
        valueError(`dictionary update sequence element #${index} has length ${pair.length}; 2 is required`);
      dict.set(pair[0]!, pair[1]!);
      index++;
    }
  }
  for (const [key, value] of keywords ?? []) dict.set(key, value);
  return dict;
}

/** `self`: defined, as in Jinja2, but blocks cannot be printed again. */
class TemplateReference extends PyObject {
  readonly typeName = 'TemplateReference';
  override attribute(name: string): Value {
    throw new PyError('RuntimeError', `'self.${name}' is not supported in chat templates`);
  }
}

const JOINER = signature('joiner', 'sep?');
const RAISE = signature('raise_exception', 'message');
const STRFTIME = signature('strftime_now', 'format');

const BODIES: Readonly<Record<string, readonly [body: Body, typeName?: string]>> = {
  range: [makeRange],
  dict: [makeDict, 'type'],
  namespace: [(state, args, keywords) => new Namespace(makeDict(state, args, keywords)), 'type'],
  cycler: [
    (_state, args, keywords) => {
      if ((keywords?.size ?? 0) > 0) return typeError('cycler takes no keyword arguments');
      return new Cycler(args);
    },
    'type',
  ],
  joiner: [(_state, args, keywords) => new Joiner(bind(JOINER, args, keywords)[0]), 'type'],
  lipsum: [
    () => {
      throw new PyError('SecurityError', 'lipsum is not available in chat templates');
    },
  ],
  raise_exception: [
    (state, args, keywords) => {
      throw new PyError('Raised', toText(state, bind(RAISE, args, keywords)[0]!));
    },
  ],
  strftime_now: [
    (state, args, keywords) => {
      const [format] = bind(STRFTIME, args, keywords);
      const text = textOf(format!);
      if (text === undefined) return typeError(`strftime() argument 1 must be str, not ${typeName(format!)}`);
      state.reserve(text.length * MAX_GROWTH);
      return state.made(strftime(state.now(), text));
    },
  ],
};

/** Name -> function. Variables of the caller hide them. */
export const GLOBALS: ReadonlyMap<string, Value> = new Map<string, Value>([
  ['self', new TemplateReference()],
  ...Object.entries(BODIES).map(
    ([name, [body, type]]) => [name, new BuiltinFunction(name, body, type ?? 'function')] as const,
  ),
]);
