/** A prompt -> the prompt with the tokens sampled after it: the only mutable record that passes through the engine. */
import type { OnpolicyError } from '../errors.ts';
import type { ExpertRows } from './expert-rows.ts';
import type { MediaLayout } from './media-layout.ts';
import type { Handle, SampledRows, SamplerHandle } from './native/index.ts';
import type { Speculation } from './speculation.ts';

/** The media of a prompt, ready to be computed. */
export type GroupMedia = {
  readonly layout: MediaLayout;
  /** (spans) the data of each that a step needs. */
  readonly chunks: readonly {
    readonly rows: Handle;
    /** (4, count) relative to the first row with M-RoPE, else empty. */
    readonly planes: Int32Array;
    readonly isNonCausal: boolean;
  }[];
};

/** Takes copies of whole caches of a prompt's beginnings. */
export type CacheKeeper = {
  /** Lengths of the beginnings, ascending. */
  readonly places: readonly number[];
  /** Returns true if the cache of this many tokens, which is one of the places, is wanted. */
  wants(tokens: number): boolean;
  /** Takes the cache. Null means that it cannot be saved. */
  take(tokens: number, state: Uint8Array | null): void;
};

/** Data that the choices of one request share. */
export type Group = {
  /** Token ids. Ids of media are below 0, and equal media have equal ids. */
  readonly prompt: Int32Array;
  /** The media of the prompt. Absent or null if it is text. */
  readonly media?: GroupMedia | null;
  /** Sequences share cached prefixes only within one key. It also identifies the content of the adapter. */
  readonly cacheKey: string;
  /** True if its sequences share no prefix with those of other groups until they end. Default false. */
  readonly skipsCache?: boolean;
  /** Number of the adapter of its sequences, or {@link NO_ADAPTER}. */
  readonly adapter: number;
  /** Lower is earlier, with `scheduling: 'priority'`. */
  readonly priority: number;
  /** Places in the prompt, ascending, after which a later one is likely to diverge: checkpoints are kept there. */
  readonly checkpoints?: readonly number[];
  /** Receives copies of its cache. Absent or null if none are kept elsewhere. */
  readonly keeper?: CacheKeeper | null;
  /** True if its sequences wait, from the next step on, while others run or wait. Default false. */
  readonly background?: boolean;
  /** Running number of the request: lower came earlier. */
  readonly arrival: number;
};

/** Edits the rows of logits of one choice in JavaScript before they are sampled from. */
export interface LogitsEditor {
  /** The error of the last edit. Null if it succeeded. */
  readonly error: OnpolicyError | null;
  /** Returns the memory of the next row, (vocab). */
  row(): Float32Array;
  /** Edits the row in place, given the tokens generated so far. Returns false if it failed, see {@link error}. */
  edit(output: Int32Array): boolean;
}

/** Collects the scores of a prompt's tokens, row by row. The row of position p scores token p + 1. */
export interface PromptScorer {
  /** Position of the first row that is still needed. Cached cells of the positions before it can be reused. */
  readonly firstRow: number;
  /** Returns the number of rows that are needed between two positions. */
  rowsIn(start: number, end: number): number;
  /** Returns how many of `count` tokens from `start` on can run when `rows` rows may be scored. */
  limit(start: number, count: number, rows: number): number;
  /** Returns the {@link Step.scoreRows} of the tokens from `start` to `end`; `at` is the index of `start` in the step. */
  layOut(start: number, end: number, at: number): Int32Array;
  /** Adds the rows `from` to `to`, which follow the last ones. Returns false if the model's logits are not numbers. */
  push(rows: SampledRows, from: number, to: number): boolean;
}

/** Optional features of a sequence. */
export type SequenceExtras = {
  /** Collects the log-probabilities of the prompt's tokens. */
  readonly promptScores?: PromptScorer | null;
  /** Edits each row of logits before it is sampled from. */
  readonly hook?: LogitsEditor | null;
  /** Receives the cache of the prompt as soon as it is computed. */
  readonly savedPrompt?: SavedPrompt | null;
  /** Maximum number of tokens that it samples. Default: no known limit. */
  readonly maxOutputs?: number;
  /** Called when it first runs and `cachedTokens` is known. */
  readonly onPlaced?: () => void;
  /** Called after each step over its tokens, with the number of tokens that are computed. */
  readonly onComputed?: ((tokens: number) => void) | null;
  /** Its draft state. Must not be combined with a hook or a sampler that returns candidates. */
  readonly speculation?: Speculation | null;
  /** Records the experts of its tokens. */
  readonly experts?: ExpertRows | null;
  /** {@link SequencePlace.cachedTokens} of the sequence that it continues. Default: it continues none. */
  readonly cachedTokens?: number;
};

/** Receives the cache of a prompt and its number of tokens. */
export type SavedPrompt = { state: Uint8Array | null; tokens: number };

/** The place of a sequence in the KV cache. Only `slots.ts` writes it. */
export type SequencePlace = {
  /** Slot of its cache while it runs, else -1. */
  slot: number;
  /** Leading tokens whose cache is filled. */
  computed: number;
  /** Places of its next checkpoints, ascending. */
  checkpoints: readonly number[];
  /** True if the backend has also computed its last token, in a run-ahead step that cannot be undone. */
  isAhead: boolean;
  /** Prompt tokens that came from the prefix cache when it first ran. -1 before that. */
  cachedTokens: number;
};

/** One choice on its way through the engine. */
export class Sequence {
  readonly group: Group;
  /** Index of the choice in the request. */
  readonly index: number;
  readonly sampler: SamplerHandle;
  readonly promptScores: PromptScorer | null;
  readonly hook: LogitsEditor | null;
  readonly savedPrompt: SavedPrompt | null;
  readonly maxOutputs: number;
  readonly onPlaced: () => void;
  readonly onComputed: ((tokens: number) => void) | null;
  readonly speculation: Speculation | null;
  readonly experts: ExpertRows | null;
  #tokens: Int32Array; // (capacity) prompt, then sampled tokens
  #length: number;
  /** The grammar that constrains its next token, or null. */
  matcher: Handle | null = null;
  /** Maximum number of tokens before some are forced. No step samples more. */
  outputsBeforeForced = Infinity;
  #awaitsToken = false;
  readonly place: Readonly<SequencePlace>;
  /**
   * When it was submitted, first ran, and got its first and its last token, in milliseconds, 0 before that. For statistics: how many tokens were
   * counted.
   */
  readonly times = {
    submittedMs: 0,
    hasStarted: false,
    startedMs: 0,
    firstTokenMs: 0,
    lastTokenMs: 0,
    counted: 0,
  };

  constructor(group: Group, index: number, sampler: SamplerHandle, extras: SequenceExtras = {}) {
    this.group = group;
    this.index = index;
    this.sampler = sampler;
    this.promptScores = extras.promptScores ?? null;
    this.hook = extras.hook ?? null;
    this.savedPrompt = extras.savedPrompt ?? null;
    this.maxOutputs = extras.maxOutputs ?? Infinity;
    this.onPlaced = extras.onPlaced ?? (() => {});
    this.onComputed = extras.onComputed ?? null;
    this.speculation = extras.speculation ?? null;
    this.experts = extras.experts ?? null;
    this.#tokens = new Int32Array(group.prompt.length + 64);
    this.#tokens.set(group.prompt);
    this.#length = group.prompt.length;
    const { cachedTokens = -1 } = extras;
    this.place = { slot: -1, computed: 0, checkpoints: [], isAhead: false, cachedTokens };
  }

  /** True if its prompt is computed, so that its next tokens are sampled or forced. */
  get isDecoding(): boolean {
    return this.place.computed >= this.group.prompt.length;
  }

  /** True if its last row became candidates. It runs again when its next token is appended. */
  get awaitsToken(): boolean {
    return this.#awaitsToken;
  }

  /** Lets it wait until its next token is appended. */
  awaitToken(): void {
    this.#awaitsToken = true;
  }

  /** Prompt and sampled tokens. */
  get length(): number {
    return this.#length;
  }

  /** Sampled tokens so far. */
  get outputCount(): number {
    return this.#length - this.group.prompt.length;
  }

  /** Tokens that it may still sample, or before others are forced. */
  get outputsLeft(): number {
    return Math.min(this.maxOutputs - this.outputCount, this.outputsBeforeForced);
  }

  /** Leading tokens that may come out of the prefix cache. The logits of the others are needed: the last one's, and those of tokens to score. */
  get reusableCount(): number {
    return Math.min(this.#length - 1, this.promptScores?.firstRow ?? Infinity);
  }

  /** The media in its tokens, or null if there are none. */
  get layout(): MediaLayout | null {
    return this.group.media?.layout ?? null;
  }

  /** Tokens from `start` to `end`; a view, valid until the next append. */
  tokens(start: number, end: number): Int32Array {
    return this.#tokens.subarray(start, end);
  }

  /** Writes `count` tokens from `start` on to `target`, from `at` on. */
  copyTokens(start: number, count: number, target: Int32Array, at: number): void {
    const tokens = this.#tokens;
    if (count < 64) for (let i = 0; i < count; i++) target[at + i] = tokens[start + i]!;
    else target.set(tokens.subarray(start, start + count), at);
  }

  /** Sampled tokens; a view, valid until the next append. */
  outputs(): Int32Array {
    return this.#tokens.subarray(this.group.prompt.length, this.#length);
  }

  /** A new sequence with the same tokens. */
  fork(index: number, sampler: SamplerHandle): Sequence {
    const fork = new Sequence(this.group, index, sampler);
    fork.#tokens = this.#tokens.slice();
    fork.#length = this.#length;
    Object.assign(fork.times, this.times);
    return fork;
  }

  /** Appends a token. Returns whether it was drafted and is in the cache already. */
  append(token: number): boolean {
    this.#awaitsToken = false;
    const isComputed = this.speculation?.observe(token) ?? false;
    if (this.#length === this.#tokens.length) {
      const grown = new Int32Array(this.#length * 2);
      grown.set(this.#tokens);
      this.#tokens = grown;
    }
    this.#tokens[this.#length++] = token;
    return isComputed;
  }
}
