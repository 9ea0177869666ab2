/** A prompt -> it with the tokens sampled after it: the one mutable record that passes through the engine. */
import type { Handle, SamplerHandle } from '../native/index.ts';
import type { LogitsHook, PromptScores } from '../sampling/index.ts';
import type { ExpertRows } from './expert-rows.ts';
import type { MediaLayout } from './media-layout.ts';
import type { Speculation } from './speculation.ts';

/** The media of a prompt, ready to be computed. */
export type GroupMedia = {
  readonly layout: MediaLayout;
  /** (spans) what a step needs of each. */
  readonly chunks: readonly {
    readonly rows: Handle;
    /** (4, count) relative to the first row with M-RoPE, else empty. */
    readonly planes: Int32Array;
    readonly isNonCausal: boolean;
  }[];
};

/** Takes copies of whole caches of a prompt's beginnings. */
export type CacheKeeper = {
  /** Where they end, ascending. */
  readonly places: readonly number[];
  /** Whether the checkpoint after this many tokens is wanted, one of the places. */
  wants(tokens: number): boolean;
  /** Null: it cannot be saved. */
  take(tokens: number, state: Uint8Array | null): void;
};

/** What the choices of one request share. */
export type Group = {
  /** Token ids; below 0 where media stand: the same medium has the same one. */
  readonly prompt: Int32Array;
  /** Absent or null: the prompt is text. */
  readonly media?: GroupMedia | null;
  /** Sequences share cached prefixes only within one key. It says what computes them, too: the content of the adapter. */
  readonly cacheKey: string;
  /** Number of the adapter that computes them; {@link NO_ADAPTER}: none. */
  readonly adapter: number;
  /** Lower is earlier, under the priority policy. */
  readonly priority: number;
  /** Places in the prompt, ascending, after which a later one is likely to diverge: checkpoints are kept there. */
  readonly checkpoints?: readonly number[];
  /** Absent or null: no cache of it is kept elsewhere. */
  readonly keeper?: CacheKeeper | null;
  /** Whether its sequences wait from the next step on while others run or wait. Absent: no. */
  readonly background?: boolean;
  /** Running number of the request: lower came earlier. */
  readonly arrival: number;
  /** Who asks. Clients share the engine fairly within a priority. Absent: one client. */
  readonly client?: string;
};

/** What only some sequences have. */
export type SequenceExtras = {
  /** Collects the log-probabilities of the prompt's tokens. */
  readonly promptScores?: PromptScores | null;
  /** Edits each row of logits before it is sampled from. */
  readonly hook?: LogitsHook | null;
  /** Receives the cache of the prompt as soon as it is computed. */
  readonly savedPrompt?: SavedPrompt | null;
  /** Tokens that it samples at most. Default: no known limit. */
  readonly maxOutputs?: number;
  /** Called when it first runs: `cachedTokens` is known. */
  readonly onPlaced?: () => void;
  /** What drafts for it. Not together with a hook or a sampler that returns candidates. */
  readonly speculation?: Speculation | null;
  /** Takes the experts of its tokens. */
  readonly experts?: ExpertRows | null;
};

/** Where the cache of a prompt goes, and how many of its tokens are in it. */
export type SavedPrompt = { state: Uint8Array | null; tokens: number };

/** One choice on its way through the engine. */
export class Sequence {
  readonly group: Group;
  /** Which choice of the request this is. */
  readonly index: number;
  readonly sampler: SamplerHandle;
  readonly promptScores: PromptScores | null;
  readonly hook: LogitsHook | null;
  readonly savedPrompt: SavedPrompt | null;
  readonly maxOutputs: number;
  readonly onPlaced: () => void;
  readonly speculation: Speculation | null;
  readonly experts: ExpertRows | null;
  #tokens: Int32Array; // (capacity) prompt, then sampled tokens
  #length: number;
  /** The grammar that constrains its next token; null: none does. */
  matcher: Handle | null = null;
  /** Tokens until some are forced at the latest: no step samples more. */
  outputsBeforeForced = Infinity;
  /** Its place among those of its priority: lower runs earlier. Ties go by arrival. */
  order = 0;
  /** Slot of its cache while it runs, else -1. */
  slot = -1;
  /** Leading tokens whose cache is filled. */
  computed = 0;
  /** Where its next checkpoints are taken, ascending. */
  checkpoints: number[] = [];
  /** The backend has computed its last token as well, in a run-ahead step that cannot be taken back. */
  isAhead = false;
  /** Its last row has become candidates: it runs again when its next token is appended. */
  awaitsToken = false;
  /** Prompt tokens that came out of the prefix cache when it first ran; -1 before that. */
  cachedTokens = -1;
  /** For statistics: when it was submitted and got its last token, in milliseconds, and how many tokens were counted. */
  readonly times = { submittedMs: 0, hasStarted: false, lastTokenMs: 0, counted: 0 };

  constructor(group: Group, index: number, sampler: SamplerHandle, extras: SequenceExtras = {}) {
    this.group = group;
    this.index = index;
    this.sampler = sampler;
    this.promptScores = extras.promptScores ?? null;
    this.hook = extras.hook ?? null;
    this.savedPrompt = extras.savedPrompt ?? null;
    this.maxOutputs = extras.maxOutputs ?? Infinity;
    this.onPlaced = extras.onPlaced ?? (() => {});
    this.speculation = extras.speculation ?? null;
    this.experts = extras.experts ?? null;
    this.#tokens = new Int32Array(group.prompt.length + 64);
    this.#tokens.set(group.prompt);
    this.#length = group.prompt.length;
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

  /** Where media lie in its tokens; null: nowhere. */
  get layout(): MediaLayout | null {
    return this.group.media?.layout ?? null;
  }

  /** Tokens from `start` to `end`; a view, valid until the next append. */
  tokens(start: number, end: number): Int32Array {
    return this.#tokens.subarray(start, end);
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

  append(token: number): void {
    this.awaitsToken = false;
    if (this.speculation?.observe(token)) this.computed += 1;
    if (this.#length === this.#tokens.length) {
      const grown = new Int32Array(this.#length * 2);
      grown.set(this.#tokens);
      this.#tokens = grown;
    }
    this.#tokens[this.#length++] = token;
  }
}
