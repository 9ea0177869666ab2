/** Tokens of a sequence -> drafts that are right as often as is asked for. */
import type { Step } from '../../src/engine/backend/index.ts';
import type { Handle } from '../../src/engine/native/index.ts';

/** Tells what comes next, and is sometimes wrong. */
export class FakeDrafter {
  readonly #next: (tokens: readonly number[]) => number;
  readonly #isRight: () => boolean;

  constructor(next: (tokens: readonly number[]) => number, isRight: () => boolean) {
    this.#next = next;
    this.#isRight = isRight;
  }

  /** A drafter as steps take it. */
  static handle(next: (tokens: readonly number[]) => number, isRight: () => boolean): Handle {
    return new FakeDrafter(next, isRight) as unknown as Handle;
  }

  static of(handle: Handle | null | undefined): FakeDrafter | null {
    return (handle ?? null) as FakeDrafter | null;
  }

  /** At least one draft, and at most `limit`. */
  draft(tokens: readonly number[], limit: number): number[] {
    const text = [...tokens];
    for (let i = 0; i < Math.max(1, limit); i++) {
      const next = this.#next(text);
      text.push(this.#isRight() ? next : next === 0 ? 1 : next - 1);
    }
    return text.slice(tokens.length);
  }
}

/** A draft stands behind a row of the same sampler, and is the token of its row. */
export function checkDraft(
  { drafts, samplers, sampleRows }: Step,
  i: number,
  prefixes: readonly (readonly number[])[],
): void {
  if (samplers[i] !== samplers[i - 1]) throw new Error('a draft behind a row of another sampler');
  const [before, own] = [prefixes[sampleRows[i - 1]!]!, prefixes[sampleRows[i]!]!];
  if (own.length !== before.length + 1 || own.at(-1) !== drafts!.drafted[i])
    throw new Error('a draft that is not the token of its row');
}
