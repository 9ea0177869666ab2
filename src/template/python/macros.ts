/** Macros, call blocks and loops -> objects of a template. */
import { equal } from './compare.ts';
import { tryLength } from './iterate.ts';
import { typeError } from './py-error.ts';
import type { RenderState } from './render-state.ts';
import { BuiltinFunction, Dict, type Keywords, PyObject, Tuple, Undefined, type Value } from './values.ts';

export type MacroShape = {
  /** Null for the body of a call block. */
  readonly name: string | null;
  readonly parameters: readonly string[];
  readonly usesCaller: boolean;
  readonly usesKwargs: boolean;
  readonly usesVarargs: boolean;
};

/** The code of a macro. Its arguments are the parameters, then caller, kwargs and varargs if used. A missing one is undefined. */
export type MacroBody = (args: readonly (Value | undefined)[]) => string;

export class Macro extends PyObject {
  readonly typeName = 'Macro';
  readonly #shape: MacroShape;
  readonly #body: MacroBody;

  constructor(shape: MacroShape, body: MacroBody) {
    super();
    this.#shape = shape;
    this.#body = body;
  }
  override repr(): string {
    return this.#shape.name === null ? '<Macro anonymous>' : `<Macro '${this.#shape.name}'>`;
  }
  override attribute(name: string): Value | undefined {
    const { name: called, parameters, usesKwargs, usesVarargs, usesCaller } = this.#shape;
    return new Map<string, Value>([
      ['name', called],
      ['arguments', new Tuple(parameters)],
      ['catch_kwargs', usesKwargs],
      ['catch_varargs', usesVarargs],
      ['caller', usesCaller],
    ]).get(name);
  }
  override call(state: RenderState, args: readonly Value[], keywords: Keywords | null): Value {
    state.enter();
    const text = this.#body(this.#bind(args, keywords));
    state.leave();
    return text;
  }

  #bind(args: readonly Value[], keywords: Keywords | null): readonly (Value | undefined)[] {
    const { name, parameters, usesCaller, usesKwargs, usesVarargs } = this.#shape;
    const count = parameters.length;
    const bound: (Value | undefined)[] = args.slice(0, count);
    const rest = new Map(keywords ?? []);
    let foundCaller = parameters.includes('caller') && bound.length === count;
    for (let i = bound.length; i < count; i++) {
      const parameter = parameters[i]!;
      bound.push(rest.get(parameter));
      rest.delete(parameter);
      if (parameter === 'caller') foundCaller = true;
    }
    if (usesCaller && !foundCaller) {
      bound.push(rest.get('caller') ?? new Undefined('No caller defined'));
      rest.delete('caller');
    }
    if (usesKwargs) bound.push(Dict.from(rest));
    else if (rest.size > 0) {
      const [first] = rest.keys();
      typeError(
        rest.has('caller')
          ? `macro '${name}' was invoked with two values for the special caller argument. This is most likely a bug.`
          : `macro '${name}' takes no keyword argument '${first}'`,
      );
    }
    if (usesVarargs) bound.push(new Tuple(args.slice(count)));
    else if (args.length > count) typeError(`macro '${name}' takes not more than ${count} argument(s)`);
    return bound;
  }
}

/** Renders the body of a recursive loop for another iterable. */
export type LoopBody = (iterable: Value, depth0: number) => string;

/** The variable `loop` inside a for loop. It reads ahead only on request, so that lazy sequences stay lazy. */
export class PyLoop extends PyObject {
  readonly typeName = 'LoopContext';
  current: Value | undefined;
  readonly #state: RenderState;
  readonly #source: Value | null;
  #iterator: Iterator<Value>;
  readonly #recurse: LoopBody | null;
  readonly #depth0: number;
  #index0 = -1;
  #length: number | null = null;
  #before: Value | undefined;
  /** The next item, if it was read ahead. */
  #after: IteratorResult<Value> | null = null;
  #lastChanged: readonly Value[] | null = null;

  /** @param source the value that is iterated, if no test filters its items */
  constructor(
    state: RenderState,
    items: Iterable<Value>,
    source: Value | null,
    recurse: LoopBody | null,
    depth0: number,
  ) {
    super();
    this.#state = state;
    this.#source = source;
    this.#iterator = items[Symbol.iterator]();
    this.#recurse = recurse;
    this.#depth0 = depth0;
  }

  /** Moves to the next item; returns false at the end. */
  advance(): boolean {
    this.#state.step();
    const after = this.#peek();
    if (after.done === true) return false;
    this.#after = null;
    this.#before = this.current;
    this.current = after.value;
    this.#index0++;
    return true;
  }

  #peek(): IteratorResult<Value> {
    this.#after ??= this.#iterator.next();
    return this.#after;
  }

  override length(): number {
    this.#length ??=
      (this.#source === null ? undefined : tryLength(this.#state, this.#source)) ?? this.#count();
    return this.#length;
  }

  /** Reads all remaining items. */
  #count(): number {
    const rest: Value[] = [];
    for (let next = this.#peek(); next.done !== true; next = this.#iterator.next()) {
      this.#state.step();
      rest.push(next.value);
    }
    this.#iterator = rest[Symbol.iterator]();
    this.#after = null;
    return rest.length + this.#index0 + 1;
  }

  override repr(): string {
    return `<LoopContext ${this.#index0 + 1}/${this.length()}>`;
  }

  static readonly #attributes = new Map<string, (loop: PyLoop) => Value>(
    Object.entries({
      index0: (loop) => loop.#index0,
      index: (loop) => loop.#index0 + 1,
      first: (loop) => loop.#index0 === 0,
      last: (loop) => loop.#peek().done === true,
      length: (loop) => loop.length(),
      revindex0: (loop) => loop.length() - loop.#index0 - 1,
      revindex: (loop) => loop.length() - loop.#index0,
      depth0: (loop) => loop.#depth0,
      depth: (loop) => loop.#depth0 + 1,
      previtem: (loop) => (loop.#index0 === 0 ? new Undefined('there is no previous item') : loop.#before!),
      nextitem: (loop) =>
        loop.#peek().done === true ? new Undefined('there is no next item') : loop.#peek().value,
      cycle: (loop) =>
        new BuiltinFunction('cycle', (_state, args) => {
          if (args.length === 0) return typeError('no items for cycling given');
          return args[loop.#index0 % args.length]!;
        }),
      changed: (loop) =>
        new BuiltinFunction('changed', (state, args) => {
          const last = loop.#lastChanged;
          if (last !== null && equal(state, new Tuple(last), new Tuple(args))) return false;
          loop.#lastChanged = args;
          return true;
        }),
    } satisfies Record<string, (loop: PyLoop) => Value>),
  );

  override attribute(name: string): Value | undefined {
    return PyLoop.#attributes.get(name)?.(this);
  }

  override call(state: RenderState, [iterable]: readonly Value[]): Value {
    if (this.#recurse === null)
      return typeError("The loop must have the 'recursive' marker to be called recursively.");
    if (iterable === undefined) typeError("missing argument: 'iterable'");
    state.enter();
    const text = this.#recurse(iterable, this.#depth0 + 1);
    state.leave();
    return text;
  }
}
