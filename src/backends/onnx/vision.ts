/** Texts and pictures of a prompt -> tokens and chunks, and rows of embeddings: what a projector is to a GGUF model. */
import { OnpolicyError } from '../../errors.ts';
import { type Handle, loadAddon, type NativeChunk, type NativeProjector } from '../../native/index.ts';
import type { Tokenizer } from '../../tokenizer/index.ts';
import { ComputeThread } from './compute-thread.ts';
import type { Features, Picture, SessionSettings } from './messages.ts';
import { invalid } from './model-errors.ts';
import type { VisionFiles } from './vision-files.ts';
import type { VisionMethods } from './vision-worker.ts';

/** What {@link OnnxProjector.encode} is asked for. */
type Tile = { readonly picture: Picture; readonly tile: number };

/** A part of a prompt with its text; `tiles`: of a picture, 0 of a text. */
type Piece = { readonly text: string; readonly picture: Picture | null; readonly tiles: number };

const NO_PLANES = new Int32Array(0);
let lastPicture = 0;

/** The rows that {@link OnnxProjector.encode} made, behind their handle. */
export function featuresOf(handle: Handle): Features {
  return handle as unknown as Features;
}

/** Sees for an ONNX model. Handles of chunks and rows are objects of this process. */
export class OnnxProjector implements NativeProjector {
  readonly sees = true;
  readonly hears = false;
  readonly sampleRate = 0;
  readonly wholeRows = 0;
  /** What the chat template writes for a picture. */
  readonly placeholder: string;
  readonly #thread: ComputeThread<VisionMethods>;
  readonly #tokenizer: Tokenizer;
  readonly #imageTokenId: number;

  private constructor(
    thread: ComputeThread<VisionMethods>,
    tokenizer: Tokenizer,
    { imageTokenId }: VisionFiles,
  ) {
    this.#thread = thread;
    this.#tokenizer = tokenizer;
    this.#imageTokenId = imageTokenId;
    this.placeholder = Buffer.from(tokenizer.bytesOf(imageTokenId)).toString();
  }

  /** Opens the encoder on a thread of its own. Fails with `MODEL_INVALID` or `UNSUPPORTED`. */
  static async open(
    folder: string,
    files: VisionFiles,
    tokenizer: Tokenizer,
    settings: SessionSettings,
  ): Promise<OnnxProjector> {
    const thread = new ComputeThread<VisionMethods>('vision-worker');
    try {
      const projector = new OnnxProjector(thread, tokenizer, files);
      if (projector.placeholder === '')
        throw invalid(
          `the tokenizer of ${folder} has no token of the id ${files.imageTokenId}, which config.json names as that of pictures`,
        );
      await thread.call('open', folder, files.encoder, settings);
      return projector;
    } catch (error) {
      await thread.close();
      throw error;
    }
  }

  /** Text that holds the placeholder stays text: its tokens are no places of a picture. */
  async tokenize(parts: readonly (string | Handle)[], addSpecial: boolean): Promise<NativeChunk[]> {
    const pieces = await Promise.all(
      parts.map(async (part): Promise<Piece> => {
        if (typeof part === 'string') return { text: part, picture: null, tiles: 0 };
        const picture = await toPicture(part);
        return { ...(await this.#thread.call('describe', picture, this.placeholder)), picture };
      }),
    );
    const ids = await this.#tokenizer.encode(pieces.map(({ text }) => text).join(''), {
      addSpecial,
      parseSpecial: true,
    });
    return this.#toChunks(ids, pieces);
  }

  async encode(
    chunk: Handle,
    cancelled: Int32Array,
  ): Promise<{ handle: Handle; bytes: number; slices: number }> {
    const { picture, tile } = chunk as unknown as Tile;
    const check = (): void => {
      if (cancelled[0] !== 0) throw new OnpolicyError('ABORTED', 'encoding was aborted');
    };
    check();
    const features = await this.#thread.call('encode', picture, this.placeholder, tile);
    check();
    return { handle: features as unknown as Handle, bytes: features.values.byteLength, slices: 1 };
  }

  close(): void {
    void this.#thread.close();
  }

  /** The tokens of a prompt, cut where rows of pictures stand: each run of them is a tile. */
  #toChunks(ids: Int32Array, pieces: readonly Piece[]): NativeChunk[] {
    const owners = pieces.flatMap(({ text, picture }, at) =>
      new Array<number>(text.split(this.placeholder).length - 1).fill(picture ? at : -1),
    );
    const places = ids.reduce((count, id) => count + (id === this.#imageTokenId ? 1 : 0), 0);
    if (places !== owners.length)
      throw new Error(`its tokenizer makes ${places} tokens of ${owners.length} times ${this.placeholder}`);
    const tiles = new Array<number>(pieces.length).fill(0); // of each piece so far
    const chunks: NativeChunk[] = [];
    let next = 0; // of the owners
    let textStart = 0;
    for (let at = 0; at < ids.length; ) {
      const part = ids[at] === this.#imageTokenId ? owners[next++]! : -1;
      if (part < 0) {
        at += 1;
        continue;
      }
      let end = at + 1;
      for (; ids[end] === this.#imageTokenId && owners[next] === part; end++) next += 1;
      if (at > textStart) chunks.push({ tokens: ids.slice(textStart, at) });
      const count = end - at;
      const handle = { picture: pieces[part]!.picture, tile: tiles[part]!++ } as unknown as Handle;
      chunks.push({ part, count, advance: count, isNonCausal: false, positions: NO_PLANES, handle });
      at = textStart = end;
    }
    if (textStart < ids.length) chunks.push({ tokens: ids.slice(textStart) });
    for (const [at, piece] of pieces.entries())
      if (tiles[at] !== piece.tiles)
        throw new Error(
          `its processor makes ${piece.tiles} pictures of one, and ${tiles[at]} places for them`,
        );
    return chunks;
  }
}

/** Its pixels in memory that the thread shares. They are copied off the JavaScript thread. */
async function toPicture(media: Handle): Promise<Picture> {
  const { width, height } = loadAddon().mediaSize(media);
  const rgb = new SharedArrayBuffer(3 * width * height);
  await loadAddon().copyPixels(media, new Uint8Array(rgb));
  return { id: ++lastPicture, rgb, width, height };
}
