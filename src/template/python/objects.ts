/** The classes of small objects: ranges, dict views, generators, namespaces, cyclers, joiners. */
import { equal } from './compare.ts';
import { intOf, toDouble } from './numbers.ts';
import { PyError, typeError, valueError } from './py-error.ts';
import type { RenderState } from './render-state.ts';
import { BuiltinFunction, type Dict, type Keywords, PyFloat, PyObject, Tuple, type Value } from './values.ts';

/** Ranges up to this length are iterated as arrays, which is faster than a generator. */
const MAX_LISTED_RANGE = 1000;

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
    this.count = Math.max(0, step > 0 ? Math.ceil((stop - start) / step) : Math.ceil((start - stop) / -step));
  }
  at(index: number): number {
    return this.start + index * this.step;
  }
  override repr(): string {
    const step = this.step === 1 ? '' : `, ${this.step}`;
    return `range(${this.start}, ${this.stop}${step})`;
  }
  override get isSubscriptable(): boolean {
    return true;
  }
  override length(): number {
    return this.count;
  }
  override iterate(state: RenderState): Iterable<Value> {
    if (this.count > MAX_LISTED_RANGE) return this.#walk();
    state.work(this.count >> 4);
    const items: number[] = [];
    for (let i = 0; i < this.count; i++) items.push(this.at(i));
    return items;
  }
  *#walk(): Generator<Value> {
    for (let i = 0; i < this.count; i++) yield this.at(i);
  }
  override *reversed(): Generator<Value> {
    for (let i = this.count - 1; i >= 0; i--) yield this.at(i);
  }
  override item(key: Value): Value | undefined {
    const index = intOf(key);
    if (index === undefined) return undefined;
    const place = Number(index) < 0 ? Number(index) + this.count : Number(index);
    return place >= 0 && place < this.count ? this.at(place) : undefined;
  }
  #indexOf(value: Value): number | undefined {
    const number = value instanceof PyFloat ? toDouble(value) : intOf(value);
    if (number === undefined || typeof number === 'bigint') return undefined;
    const index = (number - this.start) / this.step;
    return Number.isInteger(index) && index >= 0 && index < this.count ? index : undefined;
  }
  override contains(value: Value): boolean {
    return this.#indexOf(value) !== undefined;
  }
  override equals(other: Value): boolean {
    if (!(other instanceof Range) || other.count !== this.count) return false;
    if (this.count === 0) return true;
    return other.start === this.start && (this.count === 1 || other.step === this.step);
  }
  override attribute(name: string): Value | undefined {
    switch (name) {
      case 'start':
        return this.start;
      case 'stop':
        return this.stop;
      case 'step':
        return this.step;
      case 'count':
        return new BuiltinFunction(name, (_state, [value]) => Number(this.contains(value!)));
      case 'index':
        return new BuiltinFunction(name, (_state, [value]) => {
          const index = this.#indexOf(value!);
          return index ?? valueError('value is not in range');
        });
      default:
        return undefined;
    }
  }
}

/** dict.keys(), dict.values() and dict.items(). */
export class DictView extends PyObject {
  readonly typeName: 'dict_keys' | 'dict_values' | 'dict_items';
  readonly #dict: Dict;

  constructor(kind: 'dict_keys' | 'dict_values' | 'dict_items', dict: Dict) {
    super();
    this.typeName = kind;
    this.#dict = dict;
  }
  override reprParts(state: RenderState) {
    state.work(this.#dict.size);
    return { before: `${this.typeName}(`, inner: [...this.iterate()], after: ')' };
  }
  override get isHashable(): boolean {
    return this.typeName === 'dict_values';
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
  override contains(value: Value, state: RenderState): boolean | undefined {
    if (this.typeName === 'dict_keys') return this.#dict.has(value);
    if (this.typeName === 'dict_values') return undefined;
    if (!(value instanceof Tuple) || value.items.length !== 2) return false;
    const found = this.#dict.get(value.items[0]!);
    return found !== undefined && equal(state, found, value.items[1]!);
  }
  override equals(other: Value, state: RenderState): boolean {
    if (!(other instanceof DictView) || this.typeName === 'dict_values' || other.typeName !== this.typeName)
      return false;
    if (other.length() !== this.length()) return false;
    for (const item of this.iterate()) {
      state.step();
      if (!other.contains(item, state)) return false;
    }
    return true;
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
  override repr(): string {
    return `<${this.typeName} object>`;
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
  readonly #attributes: Dict;

  constructor(attributes: Dict) {
    super();
    this.#attributes = attributes;
  }
  override reprParts() {
    return { before: '<Namespace ', inner: this.#attributes, after: '>' };
  }
  override attribute(name: string): Value | undefined {
    return this.#attributes.get(name);
  }
  /** `set ns.name = value`. */
  assign(name: string, value: Value): void {
    this.#attributes.set(name, value);
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
    switch (name) {
      case 'current':
        return this.#items[this.#position]!;
      case 'next':
        return new BuiltinFunction(name, () => {
          const value = this.#items[this.#position]!;
          this.#position = (this.#position + 1) % this.#items.length;
          return value;
        });
      case 'reset':
        return new BuiltinFunction(name, () => {
          this.#position = 0;
          return null;
        });
      default:
        return undefined;
    }
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
  override get isCallable(): boolean {
    return true;
  }
  override call(_state: RenderState, args: readonly Value[], keywords: Keywords | null): Value {
    if (args.length > 0 || (keywords?.size ?? 0) > 0) return typeError('joiner takes no arguments');
    if (this.#isUsed) return this.#separator;
    this.#isUsed = true;
    return '';
  }
}
