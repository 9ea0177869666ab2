/** Options of media -> limits with their defaults. */

/** Limits on the media of requests, and folders they may be read from. */
export type MediaOptions = {
  /** Bytes of one image or audio file. Default 20 MiB. */
  readonly maxBytes?: number;
  /** Pixels of one image. Default 33,554,432. */
  readonly maxPixels?: number;
  /** Seconds of one audio clip. Default 600. */
  readonly maxSeconds?: number;
  /** Images and audio clips of one request. Default 32. */
  readonly maxParts?: number;
  /** Bytes of embeddings cached for later requests with the same image. Default 256 MiB. */
  readonly cacheBytes?: number;
  /** Encodes of one model that wait or run. Further ones fail with `TOO_LARGE`. Default 256. */
  readonly maxQueued?: number;
  /** Folders that `file:` addresses may refer to. Default: none. */
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
