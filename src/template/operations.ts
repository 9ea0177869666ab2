/** A name in generated code -> the operation of the language. Compiled templates and the evaluator call only these. */
import type { TemplateFilter } from './library/filter-table.ts';
import type { TemplateTest } from './library/tests.ts';
import { getAttribute, getItem } from './python/attributes.ts';
import { call, spreadArguments, spreadKeywords } from './python/calls.ts';
import { contains, equal, order, truth } from './python/compare.ts';
import { iterate, unpack } from './python/iterate.ts';
import { type LoopBody, LoopContext, Macro, type MacroBody, type MacroShape } from './python/macros.ts';
import { Namespace, TemplateReference } from './python/objects.ts';
import { add, concatenate, negative, operate, positive } from './python/operators.ts';
import { PyError } from './python/py-error.ts';
import type { RenderState } from './python/render-state.ts';
import { getSlice } from './python/slices.ts';
import { escapeValue, toText } from './python/text.ts';
import {
  BuiltinFunction,
  Dict,
  isList,
  type Keywords,
  Markup,
  Tuple,
  textOf,
  Undefined,
  type Value,
} from './python/values.ts';
import type { VariableContext } from './python/variable-context.ts';

/** Adds a position to an error that has none. */
function locate(error: unknown, offset: number): unknown {
  if (error instanceof PyError) {
    error.offset ??= offset;
    return error;
  }
  if (error instanceof RangeError)
    return new PyError('Budget', `the template ran over its budget: ${error.message}`, offset);
  return error;
}

/** Counts work in proportion to the size of the argument of a filter or test. */
function charge(state: RenderState, args: readonly Value[]): void {
  state.step();
  const subject = args[0]!;
  const text = typeof subject === 'string' ? subject : subject === null ? undefined : textOf(subject);
  if (text !== undefined) state.scan(text.length);
  else if (isList(subject)) state.work(subject.length >> 4);
}

function toNamespace(value: Value | undefined): Namespace {
  if (!(value instanceof Namespace))
    throw new PyError('RuntimeError', 'cannot assign attribute on non-namespace object');
  return value;
}

/** Every operation, by its name in generated code. */
export const OPERATIONS = {
  locate,
  // names
  undefinedName: (name: string): Undefined => new Undefined(`'${name}' is undefined`),
  undefinedParameter: (name: string): Undefined => new Undefined(`parameter '${name}' was not provided`),
  undefinedElse: (): Undefined =>
    new Undefined('the inline if-expression evaluated to false and no else section was defined.'),
  resolve: (context: VariableContext, name: string): Value | undefined => context.resolve(name),
  share(context: VariableContext, name: string, value: Value): void {
    context.exported.set(name, value);
  },
  self: (_state: RenderState, context: VariableContext): Value =>
    new TemplateReference((name) => {
      const block = context.blocks.get(name);
      return block === undefined ? undefined : (inner) => block(inner, context);
    }),
  superBlock: (name: string): Value =>
    new BuiltinFunction('super', () => new Undefined(`there is no parent block called '${name}'.`).fail()),
  scope(names: readonly string[], values: readonly (Value | undefined)[]): ReadonlyMap<string, Value> {
    const locals = new Map<string, Value>();
    names.forEach((name, index) => {
      const value = values[index];
      if (value !== undefined) locals.set(name, value);
    });
    return locals;
  },
  // output
  data: (state: RenderState, text: string): string => state.emit(text),
  print: (state: RenderState, value: Value): string =>
    state.emit(typeof value === 'string' ? value : toText(state, value)),
  printEscaped: (state: RenderState, value: Value): string => state.emit(escapeValue(state, value).text),
  printDynamic: (state: RenderState, value: Value): string =>
    state.emit(state.autoescape ? escapeValue(state, value).text : toText(state, value)),
  /** The text of a buffer as a value: Markup under autoescape. */
  captured: (state: RenderState, text: string): Value => {
    state.reserve(text.length);
    return state.autoescape ? new Markup(text) : text;
  },
  generation(state: RenderState, caller: Value): Value {
    const value = call(state, caller, [], null);
    const marks = state.spanMarks;
    if (marks === null) return value;
    const marked = state.made(marks[0] + textOf(value)! + marks[1]);
    return value instanceof Markup ? new Markup(marked) : marked;
  },
  block: (state: RenderState, name: string, context: VariableContext): string =>
    context.blocks.get(name)!(state, context),
  requiredBlock(name: string): never {
    throw new PyError('RuntimeError', `Required block '${name}' not found`);
  },
  loader(): never {
    throw new PyError('TypeError', 'no loader for this environment specified');
  },
  // values
  list: (state: RenderState, items: Value[]): Value => {
    state.step();
    return items;
  },
  tuple: (items: readonly Value[]): Value => new Tuple(items),
  dict(state: RenderState, flat: readonly Value[]): Value {
    state.step();
    const dict = new Dict();
    for (let i = 0; i < flat.length; i += 2) dict.set(flat[i]!, flat[i + 1]!);
    return dict;
  },
  attribute: getAttribute,
  item: getItem,
  slice: getSlice,
  truth,
  add,
  subtract: (state: RenderState, a: Value, b: Value): Value => operate(state, '-', a, b),
  multiply: (state: RenderState, a: Value, b: Value): Value => operate(state, '*', a, b),
  divide: (state: RenderState, a: Value, b: Value): Value => operate(state, '/', a, b),
  floorDivide: (state: RenderState, a: Value, b: Value): Value => operate(state, '//', a, b),
  modulo: (state: RenderState, a: Value, b: Value): Value => operate(state, '%', a, b),
  power: (state: RenderState, a: Value, b: Value): Value => operate(state, '**', a, b),
  negative,
  positive,
  concatenate,
  equal,
  notEqual: (state: RenderState, a: Value, b: Value): boolean => !equal(state, a, b),
  less: (state: RenderState, a: Value, b: Value): boolean => order(state, '<', a, b),
  lessEqual: (state: RenderState, a: Value, b: Value): boolean => order(state, '<=', a, b),
  greater: (state: RenderState, a: Value, b: Value): boolean => order(state, '>', a, b),
  greaterEqual: (state: RenderState, a: Value, b: Value): boolean => order(state, '>=', a, b),
  isIn: (state: RenderState, a: Value, b: Value): boolean => contains(state, b, a),
  isNotIn: (state: RenderState, a: Value, b: Value): boolean => !contains(state, b, a),
  // calls
  call,
  spread: spreadArguments,
  keywords: spreadKeywords,
  filter(
    state: RenderState,
    filter: TemplateFilter,
    args: readonly Value[],
    keywords: Keywords | null,
  ): Value {
    charge(state, args);
    return filter(state, args, keywords);
  },
  test(state: RenderState, test: TemplateTest, args: readonly Value[], keywords: Keywords | null): boolean {
    charge(state, args);
    return test(state, args, keywords);
  },
  missingFilter(name: string): never {
    throw new PyError('RuntimeError', `No filter named '${name}' found.`);
  },
  missingTest(name: string): never {
    throw new PyError('RuntimeError', `No test named '${name}' found.`);
  },
  macro: (shape: MacroShape, body: MacroBody): Value => new Macro(shape, body),
  // loops and assignments
  iterate,
  loop: (
    state: RenderState,
    source: Value | Iterable<Value>,
    isFiltered: boolean,
    recurse: LoopBody | null,
    depth0: number,
  ): LoopContext => new LoopContext(state, source, isFiltered, recurse, depth0),
  unpack,
  checkNamespace(value: Value | undefined): void {
    toNamespace(value);
  },
  assign(namespace: Value | undefined, name: string, value: Value): void {
    toNamespace(namespace).assign(name, value);
  },
  setAutoescape(state: RenderState, value: Value): boolean {
    const before = state.autoescape;
    state.autoescape = truth(state, value);
    return before;
  },
} as const;

/** The operations as one type. */
export type Operations = typeof OPERATIONS;
