/** Pictures and sounds of a request -> rows of embeddings among the tokens of its prompt. */
export { checkProjector } from './check-projector.ts';
export { type MediaStats, sumMediaStats } from './embedding-cache.ts';
export { MediaModel, type PlacedMedia, portableIds, refuse } from './media-model.ts';
export { soundWindows } from './sound-windows.ts';
export type { MediaPart } from './source.ts';
