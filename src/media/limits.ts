/** Options of media -> limits with their defaults. */

/** How much a request may bring, and where from. */
export type MediaOptions = {
  /** Bytes of one picture or sound. Default 20 MiB. */
  readonly maxBytes?: number;
  /** Pixels of one picture. Default 33,554,432. */
  readonly maxPixels?: number;
  /** Seconds of one sound. Default 600. */
  readonly maxSeconds?: number;
  /** Pictures and sounds of one request. Default 32. */
  readonly maxParts?: number;
  /** Bytes of embeddings that stay for the next request with the same picture. Default 256 MiB. */
  readonly cacheBytes?: number;
  /** Encodes of one model that wait or run. Further ones fail with `TOO_LARGE`. Default 256. */
  readonly maxQueued?: number;
  /** Folders whose files `file:` addresses may name. Default: none. */
  readonly folders?: readonly string[];
};

/** The same with every default filled in. */
export type MediaLimits = Required<MediaOptions>;

/** The defaults. */
export const MEDIA_DEFAULTS: MediaLimits = {
  maxBytes: 20 * 2 ** 20,
  maxPixels: 2 ** 25,
  maxSeconds: 600,
  maxParts: 32,
  cacheBytes: 2 ** 28,
  maxQueued: 256,
  folders: [],
};
