// A text model of the bench -> that and a vision encoder of SigLIP so400m's shape at 224 x 224, random weights, in bench/models/.
import fs from 'node:fs';
import path from 'node:path';
import { encodePng } from '../../scripts/make/seeing/png.mjs';
import { meta, writeGguf } from '../model/gguf.mjs';
import { ensureModel, MODELS_FOLDER } from '../model/make.mjs';
import { SHAPES } from '../model/shapes.mjs';
import { oneChunks, randomChunks } from '../model/weights.mjs';

const TEXT = 'qwen3-0.6b';
const EYES = { width: 1152, heads: 16, layers: 27, ffn: 4304, patch: 14, side: 224 };

/** { model, mmproj }: paths. The files are written if absent. */
export function ensurePair() {
  const model = ensureModel({ shape: TEXT, type: 'q8_0' });
  const mmproj = path.join(MODELS_FOLDER, 'siglip-so400m-224', 'mmproj-f16.gguf'); // separate folder, so that no model loads it
  if (!fs.existsSync(mmproj)) {
    fs.mkdirSync(path.dirname(mmproj), { recursive: true });
    writeGguf(mmproj, metadata(), tensors());
  }
  return { model, mmproj };
}

/** A picture of random pixels as a `data:` URI: each number gives another. */
export function pictureUri(number) {
  const { side } = EYES;
  let state = number + 1;
  const pixels = Uint8Array.from({ length: 3 * side * side }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state >>> 24;
  });
  return `data:image/png;base64,${encodePng(pixels, side, side).toString('base64')}`;
}

/** A request for one token about a picture. */
export const aboutPicture = (url, text = 'What is in the picture?') => ({
  messages: [
    {
      role: 'user',
      content: [
        { type: 'image_url', image_url: { url } },
        { type: 'text', text },
      ],
    },
  ],
  temperature: 0,
  max_tokens: 1,
});

function tensors() {
  const { width, layers, ffn, patch, side } = EYES;
  const textWidth = SHAPES[TEXT].width;
  const random = (name, type, dims, deviation) => {
    const tensor = { name, type, dims, deviation };
    return { ...tensor, chunks: () => randomChunks(tensor) };
  };
  const matrix = (name, inputs, outputs) => [
    random(`${name}.weight`, 'f16', [inputs, outputs], 1 / Math.sqrt(inputs)),
    random(`${name}.bias`, 'f32', [outputs], 0.02),
  ];
  const norm = (name) => [
    { name: `${name}.weight`, type: 'f32', dims: [width], chunks: () => oneChunks({ dims: [width] }) },
    random(`${name}.bias`, 'f32', [width], 0.02),
  ];
  const block = (name) => [
    ...norm(`${name}.ln1`),
    ...norm(`${name}.ln2`),
    ...['attn_q', 'attn_k', 'attn_v', 'attn_out'].flatMap((part) => matrix(`${name}.${part}`, width, width)),
    ...matrix(`${name}.ffn_up`, width, ffn),
    ...matrix(`${name}.ffn_down`, ffn, width),
  ];
  return [
    random('v.patch_embd.weight', 'f16', [patch, patch, 3, width], 1 / Math.sqrt(3 * patch * patch)),
    random('v.patch_embd.bias', 'f32', [width], 0.02),
    random('v.position_embd.weight', 'f32', [width, (side / patch) ** 2], 0.3),
    ...Array.from({ length: layers }, (_, i) => block(`v.blk.${i}`)).flat(),
    ...norm('v.post_ln'),
    ...matrix('mm.0', width, textWidth),
    ...matrix('mm.1', textWidth, textWidth),
  ];
}

function metadata() {
  const { width, heads, layers, ffn, patch, side } = EYES;
  return new Map([
    ['general.architecture', meta.string('clip')],
    ['general.name', meta.string('siglip-so400m-224, random weights')],
    ['general.file_type', meta.uint32(1)],
    ['clip.has_vision_encoder', meta.bool(true)],
    ['clip.projector_type', meta.string('janus_pro')],
    ['clip.use_gelu', meta.bool(true)],
    ['clip.vision.image_size', meta.uint32(side)],
    ['clip.vision.patch_size', meta.uint32(patch)],
    ['clip.vision.embedding_length', meta.uint32(width)],
    ['clip.vision.feed_forward_length', meta.uint32(ffn)],
    ['clip.vision.projection_dim', meta.uint32(SHAPES[TEXT].width)],
    ['clip.vision.block_count', meta.uint32(layers)],
    ['clip.vision.attention.head_count', meta.uint32(heads)],
    ['clip.vision.attention.layer_norm_epsilon', meta.float32(1e-6)],
    ['clip.vision.image_mean', meta.float32Array([0.5, 0.5, 0.5])],
    ['clip.vision.image_std', meta.float32Array([0.5, 0.5, 0.5])],
  ]);
}
