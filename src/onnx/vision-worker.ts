/** Pictures -> their text in a prompt, and rows of embeddings. Runs on the vision thread, beside the one that computes steps. */
import os from 'node:os';
import type { Tensor as Pixels, Processor, RawImage } from '@huggingface/transformers';
import type { InferenceSession, Tensor } from 'onnxruntime-node';
import { messageOf, OnpolicyError } from '../errors.ts';
import type { Features, ImageText, Picture, SessionSettings } from './messages.ts';
import { invalid, unsupported } from './model-errors.ts';
import { loadRuntime, loadTransformers } from './packages.ts';
import { serve } from './serve.ts';
import { openSession } from './session.ts';

/** Inputs that an encoder may have, and their types. */
const INPUTS: Readonly<Record<string, string>> = { pixel_values: 'float32', pixel_attention_mask: 'bool' };

type Opened = {
  readonly session: InferenceSession;
  readonly output: string;
  readonly processor: Processor;
  readonly RawImage: typeof RawImage;
  readonly Tensor: typeof Tensor;
};

/** Output of the processor for a picture: its text, and the pixels of tiles. */
type Processed = { readonly id: number; readonly text: string; readonly pixels: Pixels };

/** Niceness of this thread relative to the compute threads: beside them it gets about a third of the cores. */
const NICENESS = 3;

let opened: Opened | null = null;
let last: Processed | null = null; // tiles of one picture are encoded one after the other

/** Opens a vision encoder and the processor of its folder. */
async function open(folder: string, file: string, settings: SessionSettings): Promise<void> {
  // Only Linux has priorities of threads. The session's threads inherit this one's.
  if (process.platform === 'linux') os.setPriority(0, NICENESS);
  const session = await openSession(file, settings);
  for (const input of session.inputMetadata) {
    const type = input.isTensor ? input.type : 'no tensor';
    if (INPUTS[input.name] !== type)
      throw unsupported(
        `${file} takes ${input.name} (${type}); an encoder of pixel_values (float32), and pixel_attention_mask (bool), can be given pictures`,
      );
  }
  const { AutoProcessor, RawImage } = await loadTransformers();
  const { Tensor } = await loadRuntime();
  const processor = await AutoProcessor.from_pretrained(folder, { local_files_only: true }).catch(
    (cause: unknown) => {
      throw invalid(`the processor of ${folder}: ${messageOf(cause)}`, cause);
    },
  );
  // Prompts are tokenized as a whole, so only the text of the processor is needed.
  Object.assign(processor.components, { tokenizer: (text: string[]) => ({ text }) });
  const output = session.outputNames.find((name) => name === 'image_features') ?? session.outputNames[0]!;
  opened = { session, output, processor, RawImage, Tensor };
}

async function prepare({ id, rgb, width, height }: Picture, placeholder: string): Promise<Processed> {
  if (last?.id === id) return last;
  const { processor, RawImage } = opened!;
  const image = new RawImage(new Uint8ClampedArray(new Uint8Array(rgb)), width, height, 3);
  const isImageFirst = processor.constructor.name === 'LlavaProcessor';
  const made = await (isImageFirst ? processor(image, placeholder) : processor(placeholder, image)).catch(
    (cause: unknown) => {
      throw new OnpolicyError(
        'INVALID_REQUEST',
        `the model's processor cannot prepare a picture of ${width} x ${height}: ${messageOf(cause)}`,
        { cause },
      );
    },
  );
  const { text, pixel_values: pixels } = made as { text?: string[]; pixel_values: Pixels };
  last = { id, text: text?.[0] ?? '', pixels };
  return last;
}

/** Returns the text for a picture in a prompt: `placeholder`, as the processor expands it. */
async function describe(picture: Picture, placeholder: string): Promise<ImageText> {
  const { text, pixels } = await prepare(picture, placeholder);
  const { dims } = pixels;
  return { text, tiles: dims.length === 5 ? dims[0]! * dims[1]! : dims[0]! };
}

/** Encodes a tile of a picture that was described with the same placeholder. */
async function encode(picture: Picture, placeholder: string, tile: number): Promise<Features> {
  const { session, output, Tensor } = opened!;
  const { dims, data } = (await prepare(picture, placeholder)).pixels;
  const shape = dims.slice(-3);
  const size = shape.reduce((product, length) => product * length, 1);
  const values = (data as Float32Array).slice(tile * size, (tile + 1) * size);
  const front = dims.length === 5 ? [1, 1] : [1];
  const [, height, width] = shape as [number, number, number];
  const isSeen = new Uint8Array(height * width).fill(1);
  const feeds = {
    pixel_values: new Tensor('float32', values, [...front, ...shape]),
    pixel_attention_mask: new Tensor('bool', isSeen, [...front, height, width]),
  };
  const made = await session.run(
    Object.fromEntries(session.inputNames.map((name) => [name, feeds[name as keyof typeof feeds]])),
    [output],
  );
  const features = made[output]!;
  if (!(features.data instanceof Float32Array))
    throw unsupported(
      `its vision encoder gives numbers of type ${features.type}; float32 can be computed with`,
    );
  const shared = new Float32Array(new SharedArrayBuffer(4 * features.data.length));
  shared.set(features.data);
  return { values: shared, size: features.dims.at(-1)! };
}

const methods = {
  open,
  describe,
  encode,
  async close(): Promise<void> {
    await opened?.session.release();
  },
};

/** Methods of the vision thread. */
export type VisionMethods = typeof methods;

serve(methods);
