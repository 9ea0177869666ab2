/** What is loaded for whom: the words that models and their drafts share. */
import type { DraftModel } from './draft-model.ts';
import type { EmbeddingModel } from './embedding-model.ts';
import type { Enter, Resident } from './residency.ts';
import type { RunningModel } from './running-model.ts';

/** Who wants a model, and for how long it should stay afterwards. */
export type ModelUseOptions = {
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds without a request; infinite: for good. Null or absent: as the runtime's options say. */
  readonly keepMs?: number | null;
  /** An answer will be computed: it counts for `maxWaiting`. */
  readonly isAnswer?: boolean;
};

export type InMemory = RunningModel | EmbeddingModel | DraftModel;

/** Loads it when there is room. */
export type LoadInMemory = (
  enter: Enter<InMemory>,
  how: {
    readonly resident: Resident<InMemory>;
    readonly signal: AbortSignal;
    readonly onProgress: (fraction: number) => void;
  },
) => Promise<InMemory>;
