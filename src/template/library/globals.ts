/** A name -> the global function: range, dict, namespace, cycler, joiner, raise_exception, strftime_now. */
import { bind, signature } from '../python/calls.ts';
import { iterate, toList } from '../python/iterate.ts';
import { countOf } from '../python/numbers.ts';
import { Cycler, Joiner, Namespace, Range } from '../python/objects.ts';
import { PyError, typeError, valueError } from '../python/py-error.ts';
import type { RenderState } from '../python/render-state.ts';
import { toText } from '../python/text.ts';
import {
  BuiltinFunction,
  type Callee,
  Dict,
  type Keywords,
  PyObject,
  textOf,
  typeName,
  type Value,
} from '../python/values.ts';
import { MAX_GROWTH, strftime } from './strftime.ts';

const makeRange: Callee = (state, args, keywords) => {
  if ((keywords?.size ?? 0) > 0) return typeError('range() takes no keyword arguments');
  if (args.length === 0 || args.length > 3)
    return typeError(`range expected 1 to 3 arguments, got ${args.length}`);
  const numbers = args.map(countOf);
  const [start, stop, step = 1] = numbers.length === 1 ? [0, ...numbers] : numbers;
  if (step === 0) valueError('range() arg 3 must not be zero');
  const range = new Range(start!, stop!, step);
  const limit = state.limits.maxRangeLength;
  if (range.count <= limit) return range;
  throw new PyError(
    'OverflowError',
    `Range too big. The sandbox blocks ranges larger than MAX_RANGE (${limit}).`,
  );
};

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

/** The variable `self`. It is defined, as in Jinja2, but cannot print blocks again. */
class TemplateReference extends PyObject {
  readonly typeName = 'TemplateReference';
  override attribute(name: string): Value {
    throw new PyError('RuntimeError', `'self.${name}' is not supported in chat templates`);
  }
}

const JOINER = signature('joiner', 'sep?');
const RAISE = signature('raise_exception', 'message');
const STRFTIME = signature('strftime_now', 'format');

const FUNCTIONS: Readonly<Record<string, Callee>> = {
  range: makeRange,
  lipsum: () => {
    throw new PyError('SecurityError', 'lipsum is not available in chat templates');
  },
  raise_exception: (state, args, keywords) => {
    throw new PyError('Raised', toText(state, bind(RAISE, args, keywords)[0]!));
  },
  strftime_now: (state, args, keywords) => {
    const [format] = bind(STRFTIME, args, keywords);
    const text = textOf(format!);
    if (text === undefined) return typeError(`strftime() argument 1 must be str, not ${typeName(format!)}`);
    state.reserve(text.length * MAX_GROWTH);
    return state.made(strftime(state.now(), text));
  },
};
const CLASSES: Readonly<Record<string, Callee>> = {
  dict: makeDict,
  namespace: (state, args, keywords) => new Namespace(makeDict(state, args, keywords)),
  cycler: (_state, args, keywords) => {
    if ((keywords?.size ?? 0) > 0) return typeError('cycler takes no keyword arguments');
    return new Cycler(args);
  },
  joiner: (_state, args, keywords) => new Joiner(bind(JOINER, args, keywords)[0]),
};

/** Name -> global function. Variables of the caller override them. */
export const GLOBALS: ReadonlyMap<string, Value> = new Map<string, Value>([
  ['self', new TemplateReference()],
  ...Object.entries(FUNCTIONS).map(
    ([name, body]) => [name, new BuiltinFunction(name, body, 'function')] as const,
  ),
  ...Object.entries(CLASSES).map(([name, body]) => [name, new BuiltinFunction(name, body, 'type')] as const),
]);
