/** Limits -> the mutable state of one render: budgets and switches. Each operation that can grow takes it first. */
import { overBudget } from './py-error.ts';

/** Upper bounds of one render. Exceeding one is an error; nothing is truncated silently. */
export type TemplateLimits = {
  /** Loop iterations, macro calls and units of work inside operations. */
  readonly maxSteps: number;
  /** Characters of all strings created during one render. */
  readonly maxTotalCharacters: number;
  /** Characters of one string value. */
  readonly maxValueCharacters: number;
  /** Characters of the rendered text. */
  readonly maxOutputCharacters: number;
  /** Nested macro calls, recursive loops and nested values. */
  readonly maxDepth: number;
  /** Elements of one range, as in Jinja2's sandbox. */
  readonly maxRangeLength: number;
  /** Bits of one integer. */
  readonly maxIntegerBits: number;
  /** Wall-clock time in milliseconds. */
  readonly maxTimeMs: number;
};

/** Default limits. */
export const DEFAULT_LIMITS: TemplateLimits = {
  maxSteps: 2_000_000,
  maxTotalCharacters: 64_000_000,
  maxValueCharacters: 8_000_000,
  maxOutputCharacters: 16_000_000,
  maxDepth: 100,
  maxRangeLength: 100_000,
  maxIntegerBits: 14_300, // room for the 4300 digits that Python prints
  maxTimeMs: 2_000,
};

/** Steps between two checks of the clock. */
const CLOCK_INTERVAL_STEPS = 1024;

/** Settings of a render besides its variables. */
export type RenderSettings = {
  readonly limits: TemplateLimits;
  readonly now: () => Date;
  /** Marks around generation blocks; null if spans are not requested. */
  readonly spanMarks: readonly [start: string, end: string] | null;
  /** Values whose missing fields are errors -> their paths in the caller's input. */
  readonly paths: ReadonlyMap<unknown, string>;
  readonly growsLists: boolean;
};

export class RenderState {
  readonly limits: TemplateLimits;
  readonly now: RenderSettings['now'];
  readonly spanMarks: RenderSettings['spanMarks'];
  /** Position of the last operation in the template, for errors. */
  at = 0;
  readonly #paths: RenderSettings['paths'];
  readonly #growing: WeakSet<readonly unknown[]> | null;
  #steps = 0;
  #nextCheck = CLOCK_INTERVAL_STEPS;
  #totalCharacters = 0;
  #depth = 0;
  readonly #startMs = performance.now();

  constructor({ limits, now, spanMarks, paths, growsLists }: RenderSettings) {
    this.limits = limits;
    this.now = now;
    this.spanMarks = spanMarks;
    this.#paths = paths;
    this.#growing = growsLists ? new WeakSet() : null;
  }

  madeList<T extends readonly unknown[]>(list: T): T {
    this.#growing?.add(list);
    return list;
  }

  canGrow(list: readonly unknown[]): boolean {
    return this.#growing?.has(list) ?? false;
  }

  /** Returns the path of a value whose missing fields are errors, or undefined for other values. */
  pathOf(value: unknown): string | undefined {
    return this.#paths.size === 0 ? undefined : this.#paths.get(value);
  }

  step(): void {
    if (++this.#steps >= this.#nextCheck) this.#check();
  }

  /** Counts `amount` steps. Must be called before work in proportion to `amount`. */
  work(amount: number): void {
    this.#steps += amount;
    if (this.#steps >= this.#nextCheck) this.#check();
  }

  /** Counts work in proportion to scanning `length` characters. */
  scan(length: number): void {
    if (length > 63) this.work(length >> 6);
  }

  #check(): void {
    const { maxSteps, maxTimeMs } = this.limits;
    if (this.#steps > maxSteps) overBudget('steps', maxSteps);
    if (performance.now() - this.#startMs > maxTimeMs) overBudget('time in milliseconds', maxTimeMs);
    this.#nextCheck = Math.min(this.#steps + CLOCK_INTERVAL_STEPS, maxSteps + 1);
  }

  /** Counts a string of `length` characters before it is created. */
  reserve(length: number): void {
    if (length > this.limits.maxValueCharacters)
      overBudget('characters of one value', this.limits.maxValueCharacters);
    this.#totalCharacters += length;
    if (this.#totalCharacters > this.limits.maxTotalCharacters)
      overBudget('characters in total', this.limits.maxTotalCharacters);
  }

  /** Counts characters that are appended to a buffer. */
  emit(text: string): string {
    this.#totalCharacters += text.length;
    if (this.#totalCharacters > this.limits.maxTotalCharacters)
      overBudget('characters in total', this.limits.maxTotalCharacters);
    if (++this.#steps >= this.#nextCheck) this.#check();
    return text;
  }

  checkOutput(text: string): void {
    const limit = this.limits.maxOutputCharacters;
    if (text.length > limit) overBudget('characters of output', limit);
  }

  made(text: string): string {
    this.reserve(text.length);
    return text;
  }

  /** Enters a nesting level: a macro call, a recursive loop, a nested value. Must be paired with `leave`. */
  enter(): void {
    if (++this.#depth > this.limits.maxDepth) overBudget('depth', this.limits.maxDepth);
    this.step();
  }

  leave(): void {
    this.#depth--;
  }
}
