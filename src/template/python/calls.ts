/** Arguments -> parameters: binds positional and keyword arguments to a signature, as in Python. */

import { iterate } from './iterate.ts';
import { typeError } from './py-error.ts';
import type { RenderState } from './render-state.ts';
import { Dict, type Keywords, PyObject, textOf, typeName, Undefined, type Value } from './values.ts';

/**
 * Reads a signature such as `'sep? maxsplit?'` or `'old new / count?'`: `?` marks an optional parameter,
 * parameters before `/` are positional-only.
 */
export function signature(name: string, text: string) {
  const words = text.split(' ').filter((word) => word !== '');
  const slash = words.indexOf('/');
  const parameters = words.filter((word) => word !== '/');
  return {
    name,
    parameters: parameters.map((word) => word.replace('?', '')),
    required: parameters.filter((word) => !word.endsWith('?')).length,
    positionalOnly: Math.max(0, slash),
  };
}

/** The arguments in the order of the parameters; undefined if missing. */
export function bind(
  target: ReturnType<typeof signature>,
  args: readonly Value[],
  keywords: Keywords | null,
): readonly (Value | undefined)[] {
  const { parameters, required } = target;
  if (args.length > parameters.length)
    return typeError(`${target.name}() takes at most ${parameters.length} arguments (${args.length} given)`);
  if (keywords === null || keywords.size === 0) {
    if (args.length < required)
      typeError(`${target.name}() missing required argument: '${parameters[args.length]}'`);
    return args;
  }
  const bound: (Value | undefined)[] = [...args];
  for (const [key, value] of keywords) {
    const index = parameters.indexOf(key);
    if (index < target.positionalOnly)
      typeError(`${target.name}() got an unexpected keyword argument '${key}'`);
    if (index < args.length) typeError(`${target.name}() got multiple values for argument '${key}'`);
    bound[index] = value;
  }
  for (let i = 0; i < required; i++)
    if (bound[i] === undefined) typeError(`${target.name}() missing required argument: '${parameters[i]}'`);
  return bound;
}

export function call(
  state: RenderState,
  value: Value,
  args: readonly Value[],
  keywords: Keywords | null,
): Value {
  if (value instanceof PyObject && value.call) {
    state.step();
    return value.call(state, args, keywords);
  }
  if (value instanceof Undefined) return value.fail();
  return typeError(`'${typeName(value)}' object is not callable`);
}

export function spreadArguments(state: RenderState, args: readonly Value[], value: Value): Value[] {
  const all = [...args];
  for (const item of iterate(state, value)) {
    state.step();
    all.push(item);
  }
  return all;
}

export function spreadKeywords(state: RenderState, keywords: Map<string, Value>, value: Value): Keywords {
  if (value instanceof Undefined) value.fail();
  if (!(value instanceof Dict))
    return typeError(`argument after ** must be a mapping, not ${typeName(value)}`);
  for (const [key, item] of value.entries()) {
    state.step();
    const name = textOf(key);
    if (name === undefined) return typeError('keywords must be strings');
    if (keywords.has(name)) typeError(`got multiple values for keyword argument '${name}'`);
    keywords.set(name, item);
  }
  return keywords;
}
