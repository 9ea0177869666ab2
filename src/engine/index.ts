/** Sequences of tokens -> sampled tokens: the step loop over one backend, its scheduler and its KV cache. */
export { Engine, type EngineStats, type Listener, sumStats } from './engine.ts';
export {
  type CacheOwner,
  digestModel,
  KV_TRANSFER_FOLDER,
  type KvTransfer,
  loadCache,
  readKvTransfer,
  saveCache,
} from './kv-transfer.ts';
export { type Group, type SavedPrompt, Sequence } from './sequence.ts';
