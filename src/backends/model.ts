/** What a loaded model is to the rest, whichever engine computes it. */

import type { SamplingDefaults } from '../sampling/index.ts';
import type { Vocabulary } from '../structured/index.ts';
import type { Tokenizer } from '../tokenizer/index.ts';
import type { Backend } from './backend.ts';

/** Limits of a backend. */
export type ContextLimits = {
  readonly kvTokens: number;
  /** See {@link Backend.sharesCells}. */
  readonly sharesCells: boolean;
  readonly batchTokens: number;
  readonly slotCount: number;
  /** Rows of logits of one step at most; never less than one per slot. */
  readonly maxOutputs: number;
  readonly threads: number;
};

/** A model in memory: what it says about itself, and what computes it. */
export interface LoadedModel {
  /** Engine and model, for answers. */
  readonly fingerprint: string;
  /** Files whose content stands for the model. */
  readonly files: readonly string[];
  readonly tokenizer: Tokenizer;
  /** Tokens that the model was made for. */
  readonly contextLength: number;
  /** Empty: it holds none. */
  readonly chatTemplate: string;
  /** The variant for requests with tools; empty: there is only one. */
  readonly toolTemplate: string;
  readonly defaults: SamplingDefaults;
  /** Bytes that one token takes in the KV cache. */
  readonly kvBytesPerToken: number;
  /** Whether every slot may have cells of its own. */
  readonly canSeparateCells: boolean;
  /** Whether slots may share a pool of cells. */
  readonly canShareCells: boolean;
  /** Whether threads cost more than they save. */
  readonly isTiny: boolean;
  /** The vocabulary as grammars need it; made once. */
  vocabulary(): Promise<Vocabulary>;
  /** Makes the backend. Fails with `OUT_OF_MEMORY` when its cache cannot fit. */
  createBackend(limits: ContextLimits): Promise<Backend>;
  close(): void | Promise<void>;
}
