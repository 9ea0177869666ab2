/** Expressions -> functions from a frame to the value. The base class of the compiler. */
import type { Frame } from './frame.ts';
import { FILTERS, TESTS } from './library/library.ts';
import { nunjucksCompiler } from './nunjucks.ts';
import { getAttribute, getItem, isDictAttribute } from './python/attributes.ts';
import { call, spreadArguments, spreadKeywords } from './python/calls.ts';
import { COMPARISONS, truth } from './python/compare.ts';
import { STR_METHODS } from './python/methods/str-methods.ts';
import { add, concatenate, negative, operate, positive } from './python/operators.ts';
import { PyError, syntaxError } from './python/py-error.ts';
import type { RenderState } from './python/render-state.ts';
import { getSlice } from './python/slices.ts';
import type { Applied } from './python/table.ts';
import { Dict, isList, type Keywords, Tuple, textOf, Undefined, type Value } from './python/values.ts';
import type { Arguments, Expression, NodeOf } from './syntax/nodes.ts';
import type { Scope, SlotReference } from './syntax/scope.ts';

export type Evaluate = (frame: Frame) => Value;

type Operation = (state: RenderState, left: Value, right: Value) => Value;

/** Filters of Jinja2 that lay out or link text. Chat templates do not use them. */
const UNSUPPORTED_FILTERS: ReadonlySet<string> = new Set(['pprint', 'urlize', 'wordwrap']);

/** Counts work in proportion to the size of the argument of a filter or test. */
function charge(state: RenderState, subject: Value): void {
  state.step();
  const text = typeof subject === 'string' ? subject : subject === null ? undefined : textOf(subject);
  if (text !== undefined) state.scan(text.length);
  else if (isList(subject)) state.work(subject.length >> 4);
}

/** Returns a function that reads a variable. It returns undefined if the variable has no value. */
export function reader(places: readonly SlotReference[]): (frame: Frame) => Value | undefined {
  const [{ slot, hops }] = places as [SlotReference, ...SlotReference[]];
  if (places.length === 1 && hops === 0) return (frame) => frame.slots[slot];
  return (frame) => {
    for (const { slot, hops } of places) {
      let owner = frame;
      for (let i = 0; i < hops; i++) owner = owner.outer!;
      const value = owner.slots[slot];
      if (value !== undefined) return value;
    }
    return undefined;
  };
}

/** Nunjucks' Compiler calls one method per type of node. Each method leaves its result in `compiled`. */
export class ExpressionCompiler extends nunjucksCompiler.Compiler {
  protected compiled: unknown;
  /** True inside `if`. An unknown filter or test is then an error only when it is reached. */
  protected isSoft = false;

  constructor() {
    super(undefined, false);
  }

  protected expression(node: Expression, scope: Scope): Evaluate {
    this.compile(node, scope);
    return this.compiled as Evaluate;
  }

  #optional(node: Expression | null, scope: Scope): Evaluate {
    return node === null ? () => null : this.expression(node, scope);
  }

  #all(nodes: readonly Expression[], scope: Scope): readonly Evaluate[] {
    return nodes.map((node) => this.expression(node, scope));
  }

  #list(nodes: readonly Expression[], scope: Scope): (frame: Frame) => Value[] {
    const items = this.#all(nodes, scope);
    return (frame) => items.map((item) => item(frame));
  }

  protected condition(node: Expression, scope: Scope): (frame: Frame) => boolean {
    const value = this.expression(node, scope);
    return (frame) => {
      const result = value(frame);
      return typeof result === 'boolean' ? result : truth(frame.state, result);
    };
  }

  /** Compiles code that is reached only under a condition. */
  protected softly<T>(isSoft: boolean, compile: () => T): T {
    const before = this.isSoft;
    this.isSoft = isSoft;
    const result = compile();
    this.isSoft = before;
    return result;
  }

  compileLiteral({ value }: NodeOf<'Literal'>): void {
    this.compiled = () => value;
  }

  compileSymbol({ name }: NodeOf<'Symbol'>, scope: Scope): void {
    const read = reader(scope.find(name));
    this.compiled = (frame: Frame) => {
      const value = read(frame);
      return value === undefined ? new Undefined(`'${name}' is undefined`) : value;
    };
  }

  compileArray(node: NodeOf<'Array'>, scope: Scope): void {
    const items = this.#list(node.items, scope);
    this.compiled = (frame: Frame) => {
      frame.state.step();
      return frame.state.madeList(items(frame));
    };
  }

  compileTuple(node: NodeOf<'Tuple'>, scope: Scope): void {
    const items = this.#list(node.items, scope);
    this.compiled = (frame: Frame) => new Tuple(items(frame));
  }

  compileDict({ pairs, offset }: NodeOf<'Dict'>, scope: Scope): void {
    const entries = pairs.map(({ key, value }) => this.#all([key, value], scope));
    this.compiled = (frame: Frame) => {
      frame.state.step();
      const values = entries.map(([key, value]) => [key!(frame), value!(frame)] as const);
      frame.state.at = offset;
      return Dict.from(values);
    };
  }

  compileAttribute({ target, name, offset }: NodeOf<'Attribute'>, scope: Scope): void {
    this.#field(target, name, getAttribute, !isDictAttribute(name), offset, scope);
  }

  compileLookupVal({ target, key, offset }: NodeOf<'LookupVal'>, scope: Scope): void {
    const name = key.typename === 'Literal' ? key.value : null;
    if (typeof name === 'string') this.#field(target, name, getItem, true, offset, scope);
    else this.#binary(getItem, target, key, offset, scope);
  }

  /** Compiles access to an attribute or item by name. If `isItem`, an item of a dict takes precedence over an attribute. */
  #field(
    target: Expression,
    name: string,
    get: (state: RenderState, value: Value, name: string) => Value,
    isItem: boolean,
    offset: number,
    scope: Scope,
  ): void {
    const value = this.expression(target, scope);
    this.compiled = (frame: Frame) => {
      const object = value(frame);
      const item = isItem && object instanceof Dict ? object.get(name) : undefined;
      if (item !== undefined) return item;
      frame.state.at = offset;
      return get(frame.state, object, name);
    };
  }

  #binary(operation: Operation, a: Expression, b: Expression, offset: number, scope: Scope): void {
    const [left, right] = [this.expression(a, scope), this.expression(b, scope)];
    this.compiled = (frame: Frame) => {
      const x = left(frame);
      const y = right(frame);
      frame.state.at = offset;
      return operation(frame.state, x, y);
    };
  }

  compileSlice(node: NodeOf<'Slice'>, scope: Scope): void {
    const value = this.expression(node.target, scope);
    const [start, stop, step] = [node.start, node.stop, node.step].map((part) => this.#optional(part, scope));
    const { offset } = node;
    this.compiled = (frame: Frame) => {
      const [object, from, to, by] = [value(frame), start!(frame), stop!(frame), step!(frame)];
      frame.state.at = offset;
      return getSlice(frame.state, object, from, to, by);
    };
  }

  compileFunCall(node: NodeOf<'FunCall'>, scope: Scope): void {
    this.compiled = this.call(node, scope, null);
  }

  /** Compiles a call. `caller` is the macro of a call block. */
  protected call(
    { callee, args, offset }: NodeOf<'FunCall'>,
    scope: Scope,
    caller: Evaluate | null,
  ): Evaluate {
    const values = this.#arguments(args, scope);
    const keywords = this.#keywords(args, scope, caller);
    const method = callee.typename === 'Attribute' ? STR_METHODS.get(callee.name) : undefined;
    if (callee.typename === 'Attribute' && method !== undefined && keywords === null) {
      const self = this.expression(callee.target, scope);
      const { name } = callee;
      // Methods of text are called directly, without creating a function object for the attribute.
      return (frame) => {
        const { state } = frame;
        const object = self(frame);
        state.at = callee.offset;
        const found = typeof object === 'string' ? null : getAttribute(state, object, name);
        const positional = values(frame);
        state.at = offset;
        if (typeof object !== 'string') return call(state, found, positional, null);
        state.step();
        return method(state, object, positional, null);
      };
    }
    const target = this.expression(callee, scope);
    return (frame) => {
      const object = target(frame);
      const positional = values(frame);
      const named = keywords === null ? null : keywords(frame);
      frame.state.at = offset;
      return call(frame.state, object, positional, named);
    };
  }

  #arguments(args: Arguments, scope: Scope): (frame: Frame) => readonly Value[] {
    const values = this.#list(args.positional, scope);
    if (args.spread === null) return values;
    const spread = this.expression(args.spread, scope);
    return (frame) => spreadArguments(frame.state, values(frame), spread(frame));
  }

  #keywords(args: Arguments, scope: Scope, caller: Evaluate | null): ((frame: Frame) => Keywords) | null {
    if (args.keywords.length === 0 && args.spreadKeywords === null && caller === null) return null;
    const named = args.keywords.map(({ name, value }) => [name, this.expression(value, scope)] as const);
    if (caller !== null) named.push(['caller', caller]);
    const spread = args.spreadKeywords === null ? null : this.expression(args.spreadKeywords, scope);
    return (frame) => {
      const keywords = new Map(named.map(([name, value]) => [name, value(frame)]));
      return spread === null ? keywords : spreadKeywords(frame.state, keywords, spread(frame));
    };
  }

  compileFilter(node: NodeOf<'Filter'>, scope: Scope): void {
    const target: Evaluate =
      node.target === null ? (frame) => frame.captured : this.expression(node.target, scope);
    this.#library('filter', FILTERS.get(node.name), node, target, scope);
  }

  compileIs(node: NodeOf<'Is'>, scope: Scope): void {
    this.#library('test', TESTS.get(node.name), node, this.expression(node.target, scope), scope);
  }

  #library(
    kind: string,
    apply: Applied | undefined,
    node: NodeOf<'Filter'> | NodeOf<'Is'>,
    target: Evaluate,
    scope: Scope,
  ): void {
    const { name, offset } = node;
    if (apply === undefined) {
      if (UNSUPPORTED_FILTERS.has(name))
        syntaxError(`the filter '${name}' is not supported in chat templates`, offset);
      if (!this.isSoft) syntaxError(`No ${kind} named '${name}'.`, offset);
      this.compiled = () => {
        throw new PyError('RuntimeError', `No ${kind} named '${name}' found.`, offset);
      };
      return;
    }
    const values = this.#arguments(node.args, scope);
    const keywords = this.#keywords(node.args, scope, null);
    this.compiled = (frame: Frame) => {
      const { state } = frame;
      const value = target(frame);
      const args = values(frame);
      const named = keywords === null ? null : keywords(frame);
      state.at = offset;
      charge(state, value);
      return apply(state, value, args, named);
    };
  }

  compileInlineIf(node: NodeOf<'InlineIf'>, scope: Scope): void {
    this.softly(true, () => {
      const condition = this.condition(node.cond, scope);
      const body = this.expression(node.body, scope);
      const otherwise: Evaluate =
        node.otherwise === null
          ? () =>
              new Undefined('the inline if-expression evaluated to false and no else section was defined.')
          : this.expression(node.otherwise, scope);
      this.compiled = (frame: Frame) => (condition(frame) ? body(frame) : otherwise(frame));
    });
  }

  /** Compiles `and` and `or`: the value of the left side, unless its truth value requires that of the right side. */
  compileEither({ operator, left, right }: NodeOf<'Either'>, scope: Scope): void {
    const [first, second] = [this.expression(left, scope), this.expression(right, scope)];
    const wanted = operator === 'and';
    this.compiled = (frame: Frame) => {
      const value = first(frame);
      return truth(frame.state, value) === wanted ? second(frame) : value;
    };
  }

  compileNot(node: NodeOf<'Not'>, scope: Scope): void {
    const condition = this.condition(node.target, scope);
    this.compiled = (frame: Frame) => !condition(frame);
  }

  compileBinOp({ operator, left, right, offset }: NodeOf<'BinOp'>, scope: Scope): void {
    const operation: Operation = (state, a, b) => operate(state, operator, a, b);
    this.#binary(operator === '+' ? add : operation, left, right, offset, scope);
  }

  compileUnaryOp({ operator, target, offset }: NodeOf<'UnaryOp'>, scope: Scope): void {
    const value = this.expression(target, scope);
    const operation = operator === '-' ? negative : positive;
    this.compiled = (frame: Frame) => {
      const operand = value(frame);
      frame.state.at = offset;
      return operation(frame.state, operand);
    };
  }

  compileConcat(node: NodeOf<'Concat'>, scope: Scope): void {
    const items = this.#list(node.items, scope);
    this.compiled = (frame: Frame) => {
      const values = items(frame);
      frame.state.at = node.offset;
      return concatenate(frame.state, values);
    };
  }

  /** Compiles `a < b < c`: each value is computed at most once, and only if all comparisons before it are true. */
  compileCompare({ first, operands, offset }: NodeOf<'Compare'>, scope: Scope): void {
    if (operands.length === 1) {
      const [{ operator, value }] = operands as [(typeof operands)[0]];
      this.#binary(COMPARISONS[operator], first, value, offset, scope);
      return;
    }
    const start = this.expression(first, scope);
    const steps = operands.map(({ operator, value }) => ({
      compare: COMPARISONS[operator],
      value: this.expression(value, scope),
    }));
    this.compiled = (frame: Frame) => {
      let left = start(frame);
      for (const { compare, value } of steps) {
        const right = value(frame);
        frame.state.at = offset;
        if (!compare(frame.state, left, right)) return false;
        left = right;
      }
      return true;
    };
  }
}
