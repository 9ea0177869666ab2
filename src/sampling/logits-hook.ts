/** A row of logits -> the same row after a choice's processors. If they fail, only their request fails. */
import { messageOf, OnpolicyError } from '../errors.ts';
import type { LogitsProcessor } from '../protocol/index.ts';

/** The processors of one choice, and the memory for its rows. */
export class LogitsHook {
  /** Error of the last edit. Null if it succeeded. */
  error: OnpolicyError | null = null;
  readonly #processors: readonly LogitsProcessor[];
  readonly #prompt: Int32Array; // a copy: processors may write to it
  readonly #vocabSize: number;
  #row = new Float32Array(0); // (vocab) reused from token to token

  constructor(processors: readonly LogitsProcessor[], prompt: Int32Array, vocabSize: number) {
    this.#processors = processors;
    this.#prompt = prompt.slice();
    this.#vocabSize = vocabSize;
  }

  /** Returns memory for the next row. It is reallocated if a processor transferred it. */
  row(): Float32Array {
    if (lengthOf(this.#row) !== this.#vocabSize) this.#row = new Float32Array(this.#vocabSize);
    return this.#row;
  }

  /** Runs the processors on the row in {@link row}, which receives the result. Returns false if one failed, see {@link error}. */
  edit(output: Int32Array): boolean {
    const outputIds = output.slice();
    let logits: Float32Array = this.#row;
    for (const [index, processor] of this.#processors.entries()) {
      try {
        const run = processor as (...given: unknown[]) => unknown;
        const ids = processor.length >= 3 ? [this.#prompt, outputIds] : [outputIds];
        const next = run(...ids, logits) ?? logits;
        if (lengthOf(next) !== this.#vocabSize) throw wrongShape(next, this.#vocabSize);
        logits = next as Float32Array;
      } catch (cause) {
        this.error = new OnpolicyError('INVALID_REQUEST', `logits_processors.${index}: ${messageOf(cause)}`, {
          cause,
          param: 'logits_processors',
        });
        return false;
      }
    }
    if (logits !== this.#row) Float32Array.prototype.set.call(this.row(), logits);
    return true;
  }
}

const typedArray = Object.getPrototypeOf(Float32Array.prototype) as object;
const lengthGetter = Object.getOwnPropertyDescriptor(typedArray, 'length')!.get!;

/** Returns the true length of a Float32Array, even if a subclass overrides it; -1 for anything else. */
function lengthOf(value: unknown): number {
  return value instanceof Float32Array ? (lengthGetter.call(value) as number) : -1;
}

function wrongShape(given: unknown, vocabSize: number): Error {
  const length = lengthOf(given);
  const got = length < 0 ? Object.prototype.toString.call(given) : `a Float32Array of ${length}`;
  return new Error(`expected nothing or a Float32Array of ${vocabSize} logits back, got ${got}`);
}
