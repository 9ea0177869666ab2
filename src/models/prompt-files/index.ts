/** Prompts -> files in the home folder with their caches, from which a later process continues. */
export { type CacheFileStats, CacheFiles, sumCacheFileStats } from './cache-files.ts';
export { DiskCache } from './disk-cache.ts';
export {
  type CacheOwner,
  digestModel,
  KV_TRANSFER_FOLDER,
  type KvTransfer,
  loadCache,
  readKvTransfer,
  saveCache,
} from './kv-transfer.ts';
export { type DiskCacheRecord, type DiskCachesResource, diskCachesResource } from './resource.ts';
