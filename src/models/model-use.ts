/** A caller's options -> the types that models and their draft models share. */
import type { DraftModel } from './draft-model.ts';
import type { EmbeddingModel } from './embedding-model.ts';
import type { Enter, Resident } from './residency.ts';
import type { RunningModel } from './running-model.ts';

/** Options of a model's use: abort signal, and how long the model stays loaded afterwards. */
export type ModelUseOptions = {
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds that the model stays loaded without a request. Infinity: it stays. Null or absent: as the runtime's options say. */
  readonly keepMs?: number | null;
  /** True if an answer will be computed, which counts for `maxWaiting`. */
  readonly isAnswer?: boolean;
};

export type InMemory = RunningModel | EmbeddingModel | DraftModel;

/** Loads a model when there is room. */
export type LoadInMemory = (
  enter: Enter<InMemory>,
  how: {
    readonly resident: Resident<InMemory>;
    readonly signal: AbortSignal;
    readonly onProgress: (fraction: number) => void;
  },
) => Promise<InMemory>;
