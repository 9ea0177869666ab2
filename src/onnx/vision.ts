/**
 * Texts and pictures of a prompt -> tokens and chunks, and rows of embeddings. This is the ONNX counterpart of a projector of a GGUF model.
 */

import { type Handle, loadAddon, type NativeChunk, type NativeProjector } from '../engine/native/index.ts';
import type { Tokenizer } from '../engine/tokenizer/index.ts';
import { OnpolicyError } from '../errors.ts';
import { ComputeThread } from './compute-thread.ts';
import type { Features, Picture, SessionSettings } from './messages.ts';
import { invalid } from './model-errors.ts';
import type { VisionFiles } from './vision-files.ts';
import type { VisionMethods } from './vision-worker.ts';

/** Argument of an encode: one tile of a picture. */
type Tile = { readonly picture: Picture; readonly tile: number };

/** A part of a prompt with its text. `tiles`: number of tiles of a picture, 0 for a text. */
type Piece = { readonly text: string; readonly picture: Picture | null; readonly tiles: number };

const NO_PLANES = new Int32Array(0);
let lastPicture = 0;

/** Returns the rows that a projector computed, from their handle. */
export function featuresOf(handle: Handle): Features {
  return handle as unknown as Features;
}

/**
 * Opens the vision part of an ONNX model on a separate thread. Handles of chunks and rows are objects of this process. Fails with
 * `MODEL_INVALID` or `UNSUPPORTED`.
 */
export async function openProjector(
  folder: string,
  { encoder, imageTokenId }: VisionFiles,
  tokenizer: Tokenizer,
  settings: SessionSettings,
): Promise<NativeProjector> {
  const placeholder = Buffer.from(tokenizer.bytesOf(imageTokenId)).toString(); // the chat template's text for a picture
  if (placeholder === '')
    throw invalid(
      `the tokenizer of ${folder} has no token of the id ${imageTokenId}, which config.json names as that of pictures`,
    );
  const thread = new ComputeThread<VisionMethods>('vision-worker');
  await thread.call('open', folder, encoder, settings).catch(async (error: unknown) => {
    await thread.close();
    throw error;
  });
  return {
    sees: true,
    hears: false,
    sampleRate: 0,
    wholeRows: 0,
    placeholder,
    /** Text that contains the placeholder stays text: its tokens are not positions of a picture. */
    async tokenize(parts, addSpecial) {
      const pieces = await Promise.all(
        parts.map(async (part): Promise<Piece> => {
          if (typeof part === 'string') return { text: part, picture: null, tiles: 0 };
          const picture = await toPicture(part);
          return { ...(await thread.call('describe', picture, placeholder)), picture };
        }),
      );
      const text = pieces.map((piece) => piece.text).join('');
      const ids = await tokenizer.encode(text, { addSpecial, parseSpecial: true });
      return toChunks(ids, pieces, { imageTokenId, placeholder });
    },
    async encode(chunk, cancelled) {
      const { picture, tile } = chunk as unknown as Tile;
      const check = (): void => {
        if (cancelled[0] !== 0) throw new OnpolicyError('ABORTED', 'encoding was aborted');
      };
      check();
      const features = await thread.call('encode', picture, placeholder, tile);
      check();
      return { handle: features as unknown as Handle, bytes: features.values.byteLength, slices: 1 };
    },
    close: () => void thread.close(),
  };
}

/** Splits the tokens of a prompt at rows of pictures: each run of them is a tile. */
function toChunks(
  ids: Int32Array,
  pieces: readonly Piece[],
  { imageTokenId, placeholder }: { readonly imageTokenId: number; readonly placeholder: string },
): NativeChunk[] {
  const owners = pieces.flatMap(({ text, picture }, at) =>
    new Array<number>(text.split(placeholder).length - 1).fill(picture ? at : -1),
  );
  const places = ids.reduce((count, id) => count + (id === imageTokenId ? 1 : 0), 0);
  if (places !== owners.length)
    throw new Error(`its tokenizer makes ${places} tokens of ${owners.length} times ${placeholder}`);
  const tiles = new Array<number>(pieces.length).fill(0); // of each piece so far
  const chunks: NativeChunk[] = [];
  let next = 0; // index into the owners
  let textStart = 0;
  for (let at = 0; at < ids.length; ) {
    const part = ids[at] === imageTokenId ? owners[next++]! : -1;
    if (part < 0) {
      at += 1;
      continue;
    }
    let end = at + 1;
    for (; ids[end] === imageTokenId && owners[next] === part; end++) next += 1;
    if (at > textStart) chunks.push({ tokens: ids.slice(textStart, at) });
    const count = end - at;
    const handle = { picture: pieces[part]!.picture, tile: tiles[part]!++ } as unknown as Handle;
    chunks.push({ part, count, advance: count, isNonCausal: false, positions: NO_PLANES, handle });
    at = textStart = end;
  }
  if (textStart < ids.length) chunks.push({ tokens: ids.slice(textStart) });
  for (const [at, piece] of pieces.entries())
    if (tiles[at] !== piece.tiles)
      throw new Error(`its processor makes ${piece.tiles} pictures of one, and ${tiles[at]} places for them`);
  return chunks;
}

/** Returns the picture with pixels in shared memory. They are copied off the JavaScript thread. */
async function toPicture(media: Handle): Promise<Picture> {
  const { width, height } = loadAddon().mediaSize(media);
  const rgb = new SharedArrayBuffer(3 * width * height);
  await loadAddon().copyPixels(media, new Uint8Array(rgb));
  return { id: ++lastPicture, rgb, width, height };
}
