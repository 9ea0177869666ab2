/** Sequences of tokens -> sampled tokens: the step loop over one backend, its scheduler and its KV cache. */
export type { Listener } from './delivery.ts';
export { EmbeddingQueue } from './embedding-queue.ts';
export { Engine } from './engine.ts';
export { type EngineCount, type EngineStats, sumStats } from './engine-stats.ts';
export { ExpertRows } from './expert-rows.ts';
export { Histogram, type HistogramData } from './histogram.ts';
export {
  type CacheOwner,
  digestModel,
  KV_TRANSFER_FOLDER,
  type KvTransfer,
  loadCache,
  readKvTransfer,
  saveCache,
} from './kv-transfer.ts';
export { MediaLayout, type MediaSpan } from './media-layout.ts';
export {
  type CacheKeeper,
  type Group,
  type GroupMedia,
  type SavedPrompt,
  Sequence,
} from './sequence.ts';
export type { CellOwner } from './slot-cells.ts';
export { Speculation } from './speculation.ts';
export type { EngineTimings } from './timings.ts';
