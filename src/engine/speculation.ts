/** The drafts of one sequence and what became of them -> how many are worth a row. A draft never decides what is sampled. */
import type { Handle } from '../native/index.ts';

/** What drafts for a sequence. */
export type SpeculationOptions = {
  /** As the addon made it. */
  readonly drafter: Handle;
  /** Drafts of one step at most. */
  readonly maxTokens: number;
  /** How often a draft is thought to be right before any was seen, 0 to 1. */
  readonly trust: number;
  /** Whether its drafts cost passes of a smaller model. Default false: they cost next to nothing. */
  readonly usesModel?: boolean;
  /** Whether text is looked through as well. Default: only where no model drafts. */
  readonly usesText?: boolean;
  /** Whether that model is the head of the large one. */
  readonly usesHead?: boolean;
  /** What other sequences know of that model: it takes the place of `trust`. */
  readonly known?: KnownDrafts;
};

/** A model that hardly helps is tried again after this many steps, and each time after twice as many. */
const FIRST_PATIENCE = 32;
const MOST_PATIENCE = 1024;

/** Drafts of a model that are right as often, and not worth it, take too long. */
const ENOUGH = 0.8;

/** Weight of the newest draft in a share, at least, and how many drafts what was thought before counts for. */
const NEWEST = 0.1;
const BEFORE = 4;
/** Behind a wrong draft the next one is thought to be right so much less often, before any was seen. */
const LESS_BEHIND_WRONG = 0.5;
const NOTHING = new Int32Array(0);
/** How often drafts of a model are thought to be right before any was seen. */
const TRUST_IN_MODEL = 0.6;

/** What became of the draft for the last token: a place in limits and rates. */
export const LAST_DRAFT = { RIGHT: 0, WRONG: 1, NONE: 2 } as const;

/** A share of drafts that were right: of all at first, then of the newest ones. */
class Share {
  value: number;
  #seen = BEFORE;

  constructor(value: number) {
    this.value = value;
  }

  add(isRight: boolean): void {
    this.#seen += 1;
    this.value += Math.max(NEWEST, 1 / this.#seen) * ((isRight ? 1 : 0) - this.value);
  }
}

/** What the sequences of an engine have seen of a model that drafts for them: a new one need not begin anew. */
export class KnownDrafts {
  readonly share = new Share(TRUST_IN_MODEL);
  /** Whether a draft was seen. */
  isSeen = false;
  /** Steps without a draft, of one sequence after the other. */
  waited = 0;
}

/**
 * Drafts are made in every step, and compared with the tokens that come. Only those that are worth it get a row of their own,
 * so text without repeats pays nothing.
 */
export class Speculation {
  readonly drafter: Handle;
  readonly maxTokens: number;
  readonly usesModel: boolean;
  /** Set while later rows could be sampled under other rules than those of the step: no drafts are checked. */
  isPaused = false;
  readonly #usesHead: boolean;
  readonly #known: KnownDrafts | null;
  /** Drafts that the step after the coming one checks at most, by {@link LAST_DRAFT}. */
  readonly limits: [number, number, number] = [0, 0, 0];
  /** Drafts that had a row, and those of them that were sampled. */
  drafted = 0;
  accepted = 0;
  /** How often drafts are right, by what became of the last one. Text that repeats comes in runs. */
  readonly #shares: readonly [Share, Share, Share];
  #last: 0 | 1 | 2 = LAST_DRAFT.NONE;
  #proposed: Int32Array = NOTHING;
  #at = 0; // in `proposed`: the draft of the next token
  #checked = 0; // of the proposed ones from there on, how many have a row
  #waited: number; // steps without a draft
  #patience = FIRST_PATIENCE;

  constructor(options: SpeculationOptions) {
    const { drafter, maxTokens, usesModel = false, usesText = !usesModel, usesHead = false, known } = options;
    const trust = known?.share.value ?? options.trust;
    const behindWrong = usesModel ? 1 : LESS_BEHIND_WRONG;
    this.#usesHead = usesHead;
    this.#known = known ?? null;
    this.#waited = known?.waited ?? 0;
    this.usesModel = usesModel;
    this.drafter = drafter;
    this.maxTokens = maxTokens;
    const all = new Share(trust);
    // Drafts of a model come in no runs.
    this.#shares =
      usesModel && !usesText ? [all, all, all] : [all, new Share(behindWrong * trust), new Share(trust)];
  }

  /** How likely a draft is right, by {@link LAST_DRAFT}. */
  get rates(): readonly [number, number, number] {
    const [right, wrong, none] = this.#shares;
    return [right.value, wrong.value, none.value];
  }

  /** Whether it is known what its drafts are worth, and cost: not before the first one of a model. */
  get isKnown(): boolean {
    return !this.usesModel || this.drafted > 0 || this.#known?.isSeen === true;
  }

  /** Takes the drafts that follow the last token. */
  propose(drafts: Int32Array): void {
    this.#proposed = drafts;
    this.#at = 0;
    this.#checked = 0;
  }

  /** Whether the model's head takes its tokens, too. */
  get isFollowed(): boolean {
    return this.#usesHead;
  }

  /** The limit that holds after the last token. */
  get limit(): number {
    return this.limits[this.#last];
  }

  /** The drafts that a step should check: `most` of them at most. */
  wanted(most: number): Int32Array {
    if (this.isPaused) return NOTHING;
    return this.#proposed.subarray(this.#at, this.#at + Math.max(0, Math.min(most, this.limit)));
  }

  /** Counts a step whose drafts are worth it or not. Returns whether one should be made all the same, to learn what it is worth by now. */
  isDue(areWorthIt: boolean): boolean {
    if (areWorthIt) this.#patience = FIRST_PATIENCE;
    this.#waited = areWorthIt ? 0 : this.#waited + 1;
    const isDue = this.#waited >= this.#patience;
    if (isDue) this.#waited = 0;
    if (this.#known) this.#known.waited = this.#waited;
    if (!isDue) return false;
    this.#patience = Math.min(2 * this.#patience, MOST_PATIENCE);
    return true;
  }

  /** The first `count` drafts are in the cache, and their rows were sampled. */
  check(count: number): void {
    this.#checked = count;
    this.drafted += count;
  }

  /** Takes the next token. Returns whether it was drafted and is in the cache already. */
  observe(token: number): boolean {
    if (this.#at >= this.#proposed.length) {
      this.#checked = 0;
      if (this.#proposed.length === 0 && !this.usesModel) this.#last = LAST_DRAFT.NONE;
      return false;
    }
    const isRight = this.#proposed[this.#at] === token;
    this.#shares[this.#last].add(isRight);
    if (this.#known) this.#known.isSeen = true;
    this.#known?.share.add(isRight);
    // It may have become worth it: the next one is tried at once, unless that many right ones were no reason before.
    if (isRight && this.usesModel && this.#shares[this.#last].value < ENOUGH)
      this.#waited = this.#patience = FIRST_PATIENCE;
    if (isRight && this.#last === LAST_DRAFT.NONE) this.#shares[LAST_DRAFT.RIGHT].add(true); // a run begins
    this.#last = isRight ? LAST_DRAFT.RIGHT : LAST_DRAFT.WRONG;
    if (!isRight) {
      this.propose(NOTHING);
      return false;
    }
    this.#at += 1;
    if (this.#checked === 0) return false;
    this.#checked -= 1;
    this.accepted += 1;
    return true;
  }
}
