/** The places of media in a prompt -> the positions of its tokens, and the places where it may be cut. Integers only. */

/** The rows that one encoder pass computes for a medium. They take the places of as many tokens. */
export type MediaSpan = {
  /** Index of the first row in the prompt. */
  readonly start: number;
  readonly count: number;
  /** Number of positions that it takes. With M-RoPE fewer than rows. */
  readonly advance: number;
  /** All its rows must be computed in one pass. */
  readonly isWhole: boolean;
};

/** The media of one prompt. */
export class MediaLayout {
  readonly spans: readonly MediaSpan[]; // ascending
  readonly #positions: readonly number[]; // (spans) of the first row of each

  constructor(spans: readonly MediaSpan[]) {
    this.spans = spans;
    let saved = 0; // positions that the spans before did not take
    this.#positions = spans.map(({ start, count, advance }) => {
      const position = start - saved;
      saved += count - advance;
      return position;
    });
  }

  /** Returns the index of the span of a token, or -1 if it is text. */
  spanAt(index: number): number {
    return this.spans.findIndex(({ start, count }) => start <= index && index < start + count);
  }

  /** Returns the position of a token. In a span with fewer positions than rows, that of its first row. */
  positionOf(index: number): number {
    const last = this.spans.findLastIndex(({ start }) => start <= index);
    if (last < 0) return index;
    const { start, count, advance } = this.spans[last]!;
    const position = this.#positions[last]!;
    if (index >= start + count) return position + advance + (index - start - count);
    return count === advance ? position + (index - start) : position;
  }

  /** Returns the largest length up to this one that does not cut a medium. */
  wholeLength(length: number): number {
    const at = this.spanAt(length);
    return at < 0 ? length : this.spans[at]!.start;
  }

  /** Returns how many of `count` tokens from `start` on may be in one entry of a step, which has text alone or rows of one medium. */
  limit(start: number, count: number): number {
    const at = this.spanAt(start);
    if (at >= 0) return Math.min(count, this.spans[at]!.start + this.spans[at]!.count - start);
    const next = this.spans.find((span) => span.start > start);
    return next ? Math.min(count, next.start - start) : count;
  }

  /** Returns true if one step must compute all rows of the medium that begins here. */
  isWholeAt(start: number): boolean {
    const at = this.spanAt(start);
    return at >= 0 && this.spans[at]!.isWhole;
  }
}
