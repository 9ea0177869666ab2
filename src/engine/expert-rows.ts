/** Steps of a request's sequences -> the experts that the tokens of its prompt and of one choice took. */
import { NO_EXPERT, type TakenExperts } from './native/index.ts';

/** Consecutive tokens, each with its experts. Tokens that were not computed, for example in a cached prefix, have {@link NO_EXPERT}. */
class Rows {
  #ids: Uint16Array = new Uint16Array(0); // (tokens, layers, used)

  put(at: number, ids: Uint16Array): void {
    if (this.#ids.length < at + ids.length)
      this.#ids = this.read(Math.max(at + ids.length, 2 * this.#ids.length));
    this.#ids.set(ids, at);
  }

  read(length: number): Uint16Array {
    const ids = new Uint16Array(length).fill(NO_EXPERT);
    ids.set(this.#ids.subarray(0, length));
    return ids;
  }
}

/** The experts of one choice. A token that is computed again gets the experts of the last time. */
export class ExpertRows {
  readonly #promptLength: number;
  readonly #prompt: Rows; // of all choices of the request
  readonly #answer = new Rows();
  #shape: Pick<TakenExperts, 'layers' | 'used'> = { layers: 0, used: 0 };

  constructor(promptLength: number, sibling: ExpertRows | null) {
    this.#promptLength = promptLength;
    this.#prompt = sibling ? sibling.#prompt : new Rows();
  }

  /** Records the experts of `count` tokens, from `first` on in the sequence and from `at` on in a step. */
  put(first: number, count: number, { layers, used, ids }: TakenExperts, at: number): void {
    this.#shape = { layers, used };
    const width = layers * used;
    const inPrompt = Math.min(count, Math.max(0, this.#promptLength - first));
    const part = (start: number, end: number) => ids.subarray((at + start) * width, (at + end) * width);
    if (inPrompt > 0) this.#prompt.put(first * width, part(0, inPrompt));
    if (inPrompt < count)
      this.#answer.put((first + inPrompt - this.#promptLength) * width, part(inPrompt, count));
  }

  /** Returns the experts of the prompt and of this many tokens of the answer. */
  read(answerLength: number): TakenExperts {
    const { layers, used } = this.#shape;
    const width = layers * used;
    const ids = new Uint16Array((this.#promptLength + answerLength) * width);
    ids.set(this.#prompt.read(this.#promptLength * width));
    ids.set(this.#answer.read(answerLength * width), this.#promptLength * width);
    return { layers, used, ids };
  }
}
