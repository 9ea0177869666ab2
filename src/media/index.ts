/** Pictures and sounds of a request -> rows of embeddings among the tokens of its prompt. */
export { MEDIA_DEFAULTS, type MediaLimits, type MediaOptions } from './limits.ts';
export { MediaModel, type MediaPrompt, type PlacedMedia, refuse } from './media-model.ts';
export type { MediaPart } from './source.ts';
