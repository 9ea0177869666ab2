/** The classes of small objects: ranges, dict views, generators, namespaces, cyclers, joiners. */
import { intOf } from './numbers.ts';
import { PyError, typeError } from './py-error.ts';
import type { RenderState } from './render-state.ts';
import { BuiltinFunction, type Dict, type Keywords, PyObject, Tuple, type Value } from './values.ts';

/** range(start, stop, step), within the length limit of the sandbox. */
export class Range extends PyObject {
  readonly typeName = 'range';
  readonly start: number;
  readonly stop: number;
  readonly step: number;
  readonly count: number;

  constructor(start: number, stop: number, step: number) {
    super();
    this.start = start;
    this.stop = stop;
    this.step = step;
    this.count = Math.max(0, Math.ceil((stop - start) / step));
  }
  at(index: number): number {
    return this.start + index * this.step;
  }
  override repr(): string {
    const step = this.step === 1 ? '' : `, ${this.step}`;
    return `range(${this.start}, ${this.stop}${step})`;
  }
  override length(): number {
    return this.count;
  }
  override iterate(state: RenderState): Value[] {
    state.work(this.count >> 4);
    const items: number[] = [];
    for (let i = 0; i < this.count; i++) items.push(this.at(i));
    return items;
  }
  override reversed(state: RenderState): Iterable<Value> {
    return this.iterate(state).reverse();
  }
  override item(key: Value): Value | undefined {
    const index = Number(intOf(key));
    const place = index < 0 ? index + this.count : index;
    return place >= 0 && place < this.count ? this.at(place) : undefined;
  }
  override attribute(name: string): Value | undefined {
    return name === 'start' || name === 'stop' || name === 'step' ? this[name] : undefined;
  }
}

export class DictView extends PyObject {
  readonly typeName: 'dict_keys' | 'dict_values' | 'dict_items';
  readonly #dict: Dict;

  constructor(kind: 'dict_keys' | 'dict_values' | 'dict_items', dict: Dict) {
    super();
    this.typeName = kind;
    this.#dict = dict;
  }
  override repr(state: RenderState) {
    state.work(this.#dict.size);
    return { before: `${this.typeName}(`, inner: [...this.iterate()], after: ')' };
  }
  override length(): number {
    return this.#dict.size;
  }
  override *iterate(): Generator<Value> {
    if (this.typeName === 'dict_keys') yield* this.#dict.keys();
    else if (this.typeName === 'dict_values') yield* this.#dict.values();
    else for (const entry of this.#dict.entries()) yield new Tuple(entry);
  }
  override reversed(state: RenderState): Iterable<Value> {
    state.work(this.#dict.size);
    return [...this.iterate()].reverse();
  }
}

/** A lazy sequence that can be iterated once. */
export class LazySequence extends PyObject {
  readonly typeName: string;
  readonly #iterator: Iterator<Value>;

  constructor(items: Iterable<Value>, typeName = 'generator') {
    super();
    this.typeName = typeName;
    this.#iterator = items[Symbol.iterator]();
  }
  override iterate(state: RenderState): Iterable<Value> {
    const iterator = this.#iterator;
    // A loop that stops early must not end the sequence: the rest can still be iterated, as in Python.
    return {
      [Symbol.iterator]: () => ({
        next: () => {
          state.step();
          return iterator.next();
        },
      }),
    };
  }
}

/** namespace(...): the only object with attributes that a template may set. */
export class Namespace extends PyObject {
  readonly typeName = 'Namespace';
  readonly attributes: Dict;

  constructor(attributes: Dict) {
    super();
    this.attributes = attributes;
  }
  override repr() {
    return { before: '<Namespace ', inner: this.attributes, after: '>' };
  }
  override attribute(name: string): Value | undefined {
    return this.attributes.get(name);
  }
}

/** cycler(...): returns its values in turn. */
export class Cycler extends PyObject {
  readonly typeName = 'Cycler';
  readonly #items: readonly Value[];
  #position = 0;

  constructor(items: readonly Value[]) {
    super();
    if (items.length === 0) throw new PyError('RuntimeError', 'at least one item has to be provided');
    this.#items = items;
  }
  override attribute(name: string): Value | undefined {
    if (name === 'current') return this.#items[this.#position % this.#items.length]!;
    if (name === 'next')
      return new BuiltinFunction(name, () => this.#items[this.#position++ % this.#items.length]!);
    if (name === 'reset')
      return new BuiltinFunction(name, () => {
        this.#position = 0;
        return null;
      });
    return undefined;
  }
}

/** joiner(separator): empty on the first call, then the separator. */
export class Joiner extends PyObject {
  readonly typeName = 'Joiner';
  readonly #separator: Value;
  #isUsed = false;

  constructor(separator: Value = ', ') {
    super();
    this.#separator = separator;
  }
  override call(_state: RenderState, args: readonly Value[], keywords: Keywords | null): Value {
    if (args.length > 0 || (keywords?.size ?? 0) > 0) return typeError('joiner takes no arguments');
    if (this.#isUsed) return this.#separator;
    this.#isUsed = true;
    return '';
  }
}
