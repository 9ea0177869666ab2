/** The one mutable record that travels: a prompt and what was sampled after it. */
import type { Handle, SamplerHandle } from '../native/index.ts';
import type { LogitsHook, PromptScores } from '../sampling/index.ts';

/** What the choices of one request share. */
export type Group = {
  readonly prompt: Int32Array;
  /** Sequences share cached prefixes only within one key and adapter. */
  readonly cacheKey: string;
  /** Number of the adapter that computes them; {@link NO_ADAPTER}: none. */
  readonly adapter: number;
  /** Lower is earlier, under the priority policy. */
  readonly priority: number;
  /** Running number of the request: lower came earlier. */
  readonly arrival: number;
};

/** What only some sequences have. */
export type SequenceExtras = {
  /** Takes the log-probabilities of the prompt's tokens. */
  readonly promptScores?: PromptScores | null;
  /** Edits each row of logits before it is sampled from. */
  readonly hook?: LogitsHook | null;
  /** Gets the cache of the prompt as soon as it is computed. */
  readonly savedPrompt?: SavedPrompt | null;
  /** Tokens that it samples at most. Default: no limit that is known. */
  readonly maxOutputs?: number;
};

/** Where the cache of a prompt goes. */
export type SavedPrompt = { state: Uint8Array | null };

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
  #tokens: Int32Array; // (capacity) prompt, then sampled tokens
  #length: number;
  /** The grammar that holds its next token; null while it is free. */
  matcher: Handle | null = null;
  /** Home of its cache while it runs, else -1. */
  slot = -1;
  /** Leading tokens whose cache is filled. */
  computed = 0;
  /** Its last row has become candidates: it goes on when its next token is appended. */
  isWaiting = false;
  /** Prompt tokens that the prefix cache saved when it first ran; -1 before that. */
  cachedTokens = -1;

  constructor(group: Group, index: number, sampler: SamplerHandle, extras: SequenceExtras = {}) {
    this.group = group;
    this.index = index;
    this.sampler = sampler;
    this.promptScores = extras.promptScores ?? null;
    this.hook = extras.hook ?? null;
    this.savedPrompt = extras.savedPrompt ?? null;
    this.maxOutputs = extras.maxOutputs ?? Infinity;
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

  /** Leading tokens that may come out of another slot's cache: the last one's logits are needed, and those of tokens to score. */
  get reusableCount(): number {
    return Math.min(this.#length - 1, this.promptScores?.firstRow ?? Infinity);
  }

  /** Tokens from `start` to `end`; a view, valid until the next append. */
  tokens(start: number, end: number): Int32Array {
    return this.#tokens.subarray(start, end);
  }

  /** Sampled tokens; a view, valid until the next append. */
  outputs(): Int32Array {
    return this.#tokens.subarray(this.group.prompt.length, this.#length);
  }

  /** A sequence of its own with the same tokens. */
  fork(index: number, sampler: SamplerHandle): Sequence {
    const fork = new Sequence(this.group, index, sampler);
    fork.#tokens = this.#tokens.slice();
    fork.#length = this.#length;
    return fork;
  }

  append(token: number): void {
    this.isWaiting = false;
    if (this.#length === this.#tokens.length) {
      const grown = new Int32Array(this.#length * 2);
      grown.set(this.#tokens);
      this.#tokens = grown;
    }
    this.#tokens[this.#length++] = token;
  }
}
