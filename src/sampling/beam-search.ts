/** Candidates of every live beam, step by step -> the best hypotheses. It works on numbers only, without tensors or text. */

/** The best tokens after one beam: parallel columns, best first. */
export type Expansion = {
  readonly ids: ArrayLike<number>;
  /** Score that each token adds to the beam; at most 0. */
  readonly scores: ArrayLike<number>;
};

/** A beam: a chain of tokens, newest first. */
export type Path<E extends Expansion = Expansion> = {
  readonly parent: Path<E> | null;
  readonly token: number;
  /** Sum of the scores of all its tokens. */
  readonly score: number;
  /** Number of tokens after the prompt. */
  readonly count: number;
  /** Expansion that its token comes from. */
  readonly expansion: E;
  readonly index: number;
};

/** Reason why a path ends: an end token, a complete text, or the maximum length. */
export type PathEnd = 'token' | 'text' | 'length';

/** A finished path. */
export type Hypothesis<E extends Expansion = Expansion> = {
  readonly path: Path<E> | null; // null: no token at all
  readonly end: PathEnd;
  /** Its score divided by its length to the power of the penalty. */
  readonly value: number;
};

/** Options of a search. */
export type BeamOptions<E extends Expansion> = {
  /** Number of beams, and of hypotheses at the end. */
  readonly width: number;
  /** Number of prompt tokens, which count for the length. */
  readonly promptTokens: number;
  readonly maxTokens: number;
  readonly lengthPenalty: number;
  /** Tokens that end a path. They do not count for its length. */
  readonly endIds: ReadonlySet<number>;
  /** The end-of-sequence token, which does not count for the length even if it ends nothing. */
  readonly eosId: number;
  /** Returns true if a path's text is complete with its last token. Called for paths that may still be among the best. */
  readonly endsText: (path: Path<E>) => boolean;
};

/** One search. Feed it the expansions of its live beams until it is done. */
export class BeamSearch<E extends Expansion = Expansion> {
  readonly #options: BeamOptions<E>;
  #live: readonly (Path<E> | null)[] = [null]; // null: the prompt alone
  #count = 0; // tokens of each live beam
  #finished: Hypothesis<E>[] = []; // best first, at most `width`

  constructor(options: BeamOptions<E>) {
    this.#options = options;
  }

  /** The live beams, best first. */
  get live(): readonly (Path<E> | null)[] {
    return this.#live;
  }

  /** True if no live beam can become one of the best hypotheses. */
  get isDone(): boolean {
    if (this.#live.length === 0 || this.#count >= this.#options.maxTokens) return true;
    const worst = this.#worst();
    return this.#live.every((path) => this.#bestReachable(path) <= worst);
  }

  /** Returns the best hypotheses, best first. Of equal ones, the one finished first comes first. */
  results(): Hypothesis<E>[] {
    if (this.#count < this.#options.maxTokens) return this.#finished;
    for (const path of this.#live) if (path) this.#finish(path, 'length');
    this.#live = [];
    return this.#finished;
  }

  /**
   * Applies one expansion per live beam. Returns for each new live beam the index of the old one that it extends. A candidate that ends a
   * path becomes a hypothesis; of the others the best `width` stay live.
   */
  step(expansions: readonly E[]): number[] {
    const { width, endIds, endsText } = this.#options;
    this.#count += 1;
    const live: Path<E>[] = [];
    const parents: number[] = [];
    for (const { beam, path } of this.#candidates(expansions)) {
      if (endIds.has(path.token)) this.#finish(path, 'token');
      else if (live.length === width && this.#valueOf(path, 'text') <= this.#worst()) continue;
      else if (endsText(path)) this.#finish(path, 'text');
      else if (live.length < width) {
        live.push(path);
        parents.push(beam);
      }
    }
    this.#live = live;
    return parents;
  }

  /** Returns all candidates, best first. Of equal ones, those of the better beam come first. */
  #candidates(expansions: readonly E[]): { beam: number; path: Path<E> }[] {
    const pool: { beam: number; path: Path<E> }[] = [];
    for (const [beam, expansion] of expansions.entries()) {
      const parent = this.#live[beam]!;
      for (let index = 0; index < expansion.ids.length; index++) {
        const score = (parent?.score ?? 0) + expansion.scores[index]!;
        const token = expansion.ids[index]!;
        pool.push({ beam, path: { parent, token, score, count: this.#count, expansion, index } });
      }
    }
    return pool.sort((a, b) => b.path.score - a.path.score);
  }

  #finish(path: Path<E>, end: PathEnd): void {
    const value = this.#valueOf(path, end);
    let at = this.#finished.length;
    while (at > 0 && this.#finished[at - 1]!.value < value) at -= 1;
    if (at >= this.#options.width) return;
    this.#finished.splice(at, 0, { path, end, value });
    this.#finished.length = Math.min(this.#finished.length, this.#options.width);
  }

  /** Returns the value of the worst hypothesis, which a new one must exceed; -Infinity while there are fewer than `width`. */
  #worst(): number {
    return this.#finished.length < this.#options.width ? -Infinity : this.#finished.at(-1)!.value;
  }

  #valueOf({ score, count, token }: Path<E>, end: PathEnd): number {
    const uncounted = end === 'token' || token === this.#options.eosId ? 1 : 0;
    return this.#divide(score, this.#options.promptTokens + count - uncounted);
  }

  /** Returns an upper bound of a path's value. Scores never grow, so it is the current score at the most favourable length. */
  #bestReachable(path: Path<E> | null): number {
    const { promptTokens, maxTokens } = this.#options;
    const score = path?.score ?? 0;
    return Math.max(
      this.#divide(score, promptTokens + this.#count),
      this.#divide(score, promptTokens + maxTokens),
    );
  }

  #divide(score: number, length: number): number {
    if (score === 0) return 0; // even if the power overflows
    return score / length ** this.#options.lengthPenalty;
  }
}

/** Returns a path's steps, oldest first. */
export function stepsOf<E extends Expansion>(path: Path<E> | null): Path<E>[] {
  const steps: Path<E>[] = [];
  for (let at = path; at; at = at.parent) steps.push(at);
  return steps.reverse();
}
