/** Sequences of tokens -> sampled tokens: the step loop over one backend, its scheduler and its KV cache. */

export type { CellOwner } from './cells.ts';
export type { Listener } from './delivery.ts';
export { EmbeddingQueue } from './embedding-queue.ts';
export { Engine } from './engine.ts';
export { sumStats } from './engine-stats.ts';
export { ExpertRows } from './expert-rows.ts';
export { MediaLayout, type MediaSpan } from './media-layout.ts';
export {
  type CacheKeeper,
  type Group,
  type GroupMedia,
  type SavedPrompt,
  Sequence,
  type SequenceExtras,
} from './sequence.ts';
export { Speculation } from './speculation.ts';
