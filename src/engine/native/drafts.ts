/** The types of the addon's drafters, which propose the next tokens of a sequence. */
import type { Handle } from './grammar.ts';

/** Sources of a sequence's drafts. */
export type DraftSources = {
  /** Tokens before a draft that must match, 1 to 32. */
  readonly minMatch: number;
  /** True if prompt and output are searched. */
  readonly usesText: boolean;
  /** Tokens of the predicted answer. */
  readonly prediction?: Int32Array;
  /** Index of other requests' answers, made by `createAnswerIndex`. */
  readonly answers?: Handle;
  /** Draft model, made by `createDraftModel`. It drafts if no other source does. */
  readonly model?: Handle;
  /** True if the model's head drafts if no other source does. */
  readonly usesHead?: boolean;
  /** Sequences share what that model has computed only within one key. */
  readonly key?: string;
};

/** Work of draft models in a step. */
export type DraftWork = {
  readonly ms: number;
  /** Passes of the smaller model, one for each draft of the longest, and tokens that they computed. */
  readonly passes: number;
  readonly tokens: number;
  /** Sequences that have drafts. */
  readonly sequences: number;
};

/** The drafters' part of the addon. */
export type DraftsAddon = {
  createDrafter(sources: DraftSources, prompt: Int32Array): Handle;
  /** Reads tokens as if they had been sampled, then drafts at most `limit` that may follow. */
  draft(drafter: Handle, tokens: Int32Array, limit: number): Int32Array;
  createAnswerIndex(minMatch: number, maxBytes: number): Handle;
  /**
   * Returns the bytes that the index takes now. The drafter of the sequence knows in which states of a grammar the tokens were written;
   * in its text they begin at `from`.
   */
  addAnswer(
    index: Handle,
    tokens: Int32Array,
    writer?: { readonly drafter: Handle; readonly from: number },
  ): number;
};
