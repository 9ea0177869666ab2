/** The tokens of a choice -> whether its last ones are the same pattern several times in a row. */
import type { ValidRepetition } from '../protocol/index.ts';

/**
 * Finds a repetition at the token that completes it. For each size of a pattern it counts how many tokens in a row equal the token of that
 * many places before, so a token costs one comparison for each size.
 */
export class RepetitionDetector {
  readonly #smallest: number;
  readonly #largest: number;
  readonly #minCount: number;
  #runs = new Int32Array(64); // by size of the pattern: equal tokens in a row

  /** @param maxTokens most tokens of the choice: no longer pattern can be there `min_count` times */
  constructor({ min_pattern_size, max_pattern_size, min_count }: ValidRepetition, maxTokens: number) {
    this.#smallest = min_pattern_size;
    this.#largest = Math.min(max_pattern_size, Math.floor(maxTokens / min_count));
    this.#minCount = min_count;
  }

  /** Reads the last token. Call it once for each token. Returns true if a pattern of an allowed size is repeated often enough. */
  push(tokens: readonly number[]): boolean {
    const last = tokens.length - 1;
    const token = tokens[last];
    const largest = Math.min(this.#largest, last);
    if (largest >= this.#runs.length) this.#grow();
    const runs = this.#runs;
    let isRepeated = false;
    for (let size = this.#smallest; size <= largest; size++) {
      if (tokens[last - size] !== token) runs[size] = 0;
      else if (++runs[size]! >= size * (this.#minCount - 1)) isRepeated = true;
    }
    return isRepeated;
  }

  #grow(): void {
    const grown = new Int32Array(2 * this.#runs.length);
    grown.set(this.#runs);
    this.#runs = grown;
  }
}
