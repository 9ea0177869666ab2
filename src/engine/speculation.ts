/** The drafts of one sequence and their outcomes -> the number of drafts worth a row. Drafts never change the sampled tokens. */
import type { Handle } from './native/index.ts';

/** Options of drafting for a sequence. */
export type SpeculationOptions = {
  /** The drafter, made by the addon. */
  readonly drafter: Handle;
  /** Maximum number of drafts per step. */
  readonly maxTokens: number;
  /** Assumed share of right drafts before any was seen, from 0 to 1. */
  readonly trust: number;
  /** True if its drafts take passes of a draft model. Default false: they cost almost no time. */
  readonly usesModel?: boolean;
  /** True if text is also searched. Default: only if no model drafts. */
  readonly usesText?: boolean;
  /** True if the draft model is the head of the large model. */
  readonly usesHead?: boolean;
  /** Acceptance rates that other sequences have measured. They replace `trust`. */
  readonly known?: KnownDrafts;
};

/** A model whose drafts do not pay is tried again after this many steps, then after twice as many each time. */
const FIRST_PATIENCE = 32;
const MOST_PATIENCE = 1024;

/** If a model's drafts are right this often and still not worth it, they take too long. */
const ENOUGH = 0.8;

/** Weight of the newest draft in a share, at least, and how many drafts what was thought before counts for. */
const NEWEST = 0.1;
const BEFORE = 4;
/** Assumed factor of the acceptance rate after a wrong draft, before any was seen. */
const LESS_BEHIND_WRONG = 0.5;
const NOTHING = new Int32Array(0);
/** Assumed share of right drafts of a model before any was seen. */
const TRUST_IN_MODEL = 0.6;

/** Outcomes of the draft for the last token, used as indices of limits and rates. */
export const LAST_DRAFT = { RIGHT: 0, WRONG: 1, NONE: 2 } as const;

/** The share of right drafts: of all drafts at first, then mostly of the newest ones. */
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

/** Acceptance rates of a draft model, shared by the sequences of an engine, so that a new one need not measure them again. */
export class KnownDrafts {
  readonly share = new Share(TRUST_IN_MODEL);
  /** True if a draft was seen. */
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
  /** The share of drafts that are right, by the outcome of the last one. Text that repeats comes in runs. */
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

  /** Returns the probability that the draft is right behind one with this outcome. */
  rateAfter(last: 0 | 1 | 2): number {
    return this.#shares[last].value;
  }

  /** True if value and cost of its drafts are known, for a model only after the first draft. */
  get isKnown(): boolean {
    return !this.usesModel || this.drafted > 0 || this.#known?.isSeen === true;
  }

  /** Takes the drafts that follow the last token. */
  propose(drafts: Int32Array): void {
    this.#proposed = drafts;
    this.#at = 0;
    this.#checked = 0;
  }

  /** True if the model's head also computes its tokens. */
  get isFollowed(): boolean {
    return this.#usesHead;
  }

  /** The limit that holds after the last token. */
  get limit(): number {
    return this.limits[this.#last];
  }

  /** The drafts that a step should check: `most` of them at most. */
  wanted(most: number): Int32Array {
    if (this.isPaused || this.#at >= this.#proposed.length) return NOTHING;
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
