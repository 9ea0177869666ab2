/** The name of a kind of projector -> checks of its keys and tensors, as the decoder's graph of that kind uses them. */
import type { Encoder, ProjectorParts } from './projector-parts.ts';

type Kind = { readonly sense: Encoder['sense']; readonly check: (parts: ProjectorParts) => void };

/** Highest number of tiles of one picture: more would take minutes. */
const MAX_TILES = 256;
/** Samples of 30 seconds make this many frames, and half as many positions. */
const POSITIONS = 1500;
const MAX_BANDS = 256;

export const PROJECTOR_KINDS: ReadonlyMap<string, Kind> = new Map<string, Kind>([
  ['mlp', { sense: 'vision', check: checkMlp }],
  ['gemma3', { sense: 'vision', check: checkGemma3 }],
  ['idefics3', { sense: 'vision', check: checkIdefics3 }],
  ['janus_pro', { sense: 'vision', check: checkJanusPro }],
  ['qwen2vl_merger', { sense: 'vision', check: checkQwen2 }],
  ['qwen2.5vl_merger', { sense: 'vision', check: checkQwen25 }],
  ['qwen3vl_merger', { sense: 'vision', check: checkQwen3 }],
  ['phi4', { sense: 'vision', check: checkPhi4 }],
  // For these kinds only the tensors that identify them are checked.
  ['gemma3nv', { sense: 'vision', check: (parts) => parts.present('v.conv_stem.conv.weight') }],
  ['gemma4v', { sense: 'vision', check: checkGemma4 }],
  ['yasa2', { sense: 'vision', check: (parts) => parts.present('v.stage.0.blk.0.dw.weight') }],
  ['qwen2a', { sense: 'audio', check: checkQwen2Audio }],
]);

/** LLaVA: concatenated rows of one or more layers go through two matrices. */
function checkMlp(parts: ProjectorParts): void {
  const { width, layers } = parts.encoder;
  const side = squareSide(parts);
  const isClassed = parts.has('v.class_embd');
  parts.optional('v.class_embd', [width]);
  parts.optional('v.image_newline', [parts.header.tensor('v.image_newline')?.shape[0] ?? 0]);
  const name = 'v.position_embd.weight';
  const needed = side * side + (isClassed ? 1 : 0);
  const positions = parts.header.tensor(name)?.shape[1] ?? needed; // rows are looked up, so there may be more
  parts.tensor(name, [width, Math.max(positions, needed)], 'matrix');
  parts.layers({ isGeneral: false, mayBeSwapped: true });
  const key = 'clip.vision.feature_layer';
  const chosen = Array.from(parts.header.array(key, 'i32')?.numbers ?? []);
  if (!chosen.every((layer) => layer >= 0 && layer <= layers))
    parts.header.refuse(key, `layers from 0 to ${layers}`, chosen.slice(0, 10).join(', '));
  const hidden = parts.linear('mm.0', width * Math.max(1, new Set(chosen).size), { bias: 'needed' });
  if (parts.has('mm.3.weight')) {
    parts.norm('mm.1', hidden, true);
    parts.norm('mm.4', parts.linear('mm.3', hidden, { bias: 'needed' }), true);
  } else parts.linear('mm.2', hidden, { bias: 'needed' });
  checkPinpoints(parts);
}

function checkGemma3(parts: ProjectorParts): void {
  const { width } = parts.encoder;
  checkSiglip(parts, 'projector.scale_factor', 4, 1);
  parts.tensor('mm.soft_emb_norm.weight', [width]);
  const name = 'mm.input_projection.weight';
  const made = parts.header.tensor(name)?.shape[0] ?? 0; // it is transposed before the product
  parts.tensor(name, [made, width], 'matrix');
}

function checkIdefics3(parts: ProjectorParts): void {
  const { width, image } = parts.encoder;
  const merged = checkSiglip(parts, 'projector.scale_factor', 1, 2);
  parts.linear('mm.model.fc', width * merged ** 2);
  const longest = parts.number('preproc_image_size', 0);
  if (longest !== 0 && !(longest >= image && longest <= image * Math.sqrt(MAX_TILES)))
    parts.header.refuse(
      'clip.vision.preproc_image_size',
      `${image}, clip.vision.image_size, to ${image * Math.sqrt(MAX_TILES)}`,
      longest,
    );
}

function checkJanusPro(parts: ProjectorParts): void {
  checkSiglip(parts, null, 1, 1);
  const hidden = parts.linear('mm.0', parts.encoder.width, { bias: 'needed' });
  parts.linear('mm.1', hidden, { bias: 'needed' });
  checkPinpoints(parts);
}

/** Checks a SigLIP projector. `key` names the number of patches per side that become one row. Returns that number. */
function checkSiglip(parts: ProjectorParts, key: string | null, otherwise: number, least: number): number {
  const { width } = parts.encoder;
  const side = squareSide(parts);
  parts.tensor('v.position_embd.weight', [width, side * side]);
  parts.layers({ isGeneral: true, mayBeSwapped: key !== null });
  const merged = key === null ? 1 : parts.number(key, otherwise);
  if (!(merged >= least && side % merged === 0))
    parts.header.refuse(
      `clip.vision.${key}`,
      `at least ${least}, a divisor of the ${side} patches on a side`,
      merged,
    );
  return merged;
}

/** Returns the number of patches on a side of a picture, which is square. */
function squareSide(parts: ProjectorParts): number {
  const side = parts.patches();
  if (side < 1)
    parts.header.refuse('clip.vision.image_size', 'at least clip.vision.patch_size', parts.encoder.image);
  return side;
}

/** Checks the sizes that a picture may be resized to: whole tiles, each an image. */
function checkPinpoints({ header, encoder: { image } }: ProjectorParts): void {
  const key = 'clip.vision.image_grid_pinpoints';
  const sides = Array.from(header.array(key, 'i32')?.numbers ?? []);
  const areTiles = sides.every((side) => side > 0 && side % image === 0);
  const isTooLarge = sides.some((side, i) => i % 2 === 1 && (side * sides[i - 1]!) / image ** 2 > MAX_TILES);
  if (sides.length % 2 !== 0 || !areTiles || isTooLarge)
    header.refuse(
      key,
      `pairs of multiples of ${image}, clip.vision.image_size, ${MAX_TILES} tiles at most`,
      sides.slice(0, 10).join(', '),
    );
}

/** Qwen2: two frames of a film are read at once, and four patches become one row. */
function checkQwen2(parts: ProjectorParts): void {
  if (parts.number('n_wa_pattern', 0) !== 0)
    parts.header.refuse('clip.vision.n_wa_pattern', '0 or none', parts.number('n_wa_pattern', 0));
  checkQwen(parts);
}

function checkQwen25(parts: ProjectorParts): void {
  const key = 'clip.vision.n_wa_pattern';
  const pattern = parts.header.need(key, parts.header.number(key));
  const made = checkQwen(parts);
  if (pattern === 0) return;
  const { patch } = parts.encoder;
  const window = parts.number('window_size', 112) || 112;
  if (window < 2 * patch || window > 4096)
    parts.header.refuse('clip.vision.window_size', `two patches, ${2 * patch} pixels, to 4096`, window);
  const rows = parts.number('projection_dim', made);
  if (rows !== made)
    parts.header.refuse('clip.vision.projection_dim', `${made}, the rows of mm.2.weight`, rows);
}

function checkQwen(parts: ProjectorParts): number {
  const { width, headSize } = parts.encoder;
  requireMergeOf2(parts);
  if (headSize % 4 !== 0)
    parts.header.fail(
      `clip.vision.attention.head_count: expected heads of 4 numbers or a multiple, got ${headSize}`,
    );
  parts.patches(['v.patch_embd.weight', 'v.patch_embd.weight.1']);
  for (const name of ['v.patch_embd.bias', 'v.class_embd']) parts.missing(name);
  parts.layers({ isGeneral: false, mayBeSwapped: true, biases: ['q', 'k', 'v'] });
  const hidden = parts.linear('mm.0', 4 * width, { bias: 'needed' });
  return parts.linear('mm.2', hidden, { bias: 'needed' });
}

/** Qwen3: positions are resized to the picture, and some layers add rows to those of the last layer. */
function checkQwen3(parts: ProjectorParts): void {
  const { header, encoder } = parts;
  const { width, layers, heads, headSize } = encoder;
  if (heads * headSize !== width || headSize % 4 !== 0)
    header.refuse('clip.vision.attention.head_count', `${width} numbers in heads of a multiple of 4`, heads);
  requireMergeOf2(parts);
  parts.patches(['v.patch_embd.weight', 'v.patch_embd.weight.1']);
  parts.present('v.patch_embd.bias');
  parts.missing('v.class_embd');
  checkGrid(parts);
  parts.layers({ isGeneral: true, mayBeSwapped: false, biases: ['qkv'] });
  const made = parts.linear('mm.2', parts.linear('mm.0', 4 * width, { bias: 'needed' }), { bias: 'needed' });
  for (let i = 0; i < layers; i++) {
    const name = `v.deepstack.${i}.`;
    if (!parts.has(`${name}fc1.weight`)) continue;
    parts.norm(`${name}norm`, 4 * width);
    parts.linear(`${name}fc2`, parts.linear(`${name}fc1`, 4 * width), { rows: made });
  }
}

function checkPhi4(parts: ProjectorParts): void {
  parts.patches();
  checkGrid(parts);
  parts.layers({ isGeneral: true, mayBeSwapped: false });
  parts.linear('mm.2', parts.linear('mm.0', parts.encoder.width, { bias: 'needed' }), { bias: 'needed' });
  const most = parts.number('image_max_pixels', 0, 1);
  parts.number('image_min_pixels', 0, 1, most);
}

/** Gemma 4: one table of positions for each direction. */
function checkGemma4(parts: ProjectorParts): void {
  const name = 'v.position_embd.weight';
  const positions = parts.header.tensor(name)?.shape[1] ?? 0;
  parts.tensor(name, [parts.encoder.width, positions, 2], 'matrix');
}

/** Checks the position table of a square picture. */
function checkGrid({ header, encoder: { width } }: ProjectorParts): void {
  const name = 'v.position_embd.weight';
  const found = header.need(`the tensor ${name}`, header.tensor(name, { types: ['f32'] }));
  const side = Math.floor(Math.sqrt(found.shape[1]!));
  header.tensor(name, { shape: [width, side * side] });
}

function requireMergeOf2(parts: ProjectorParts): void {
  const merged = parts.number('spatial_merge_size', 2);
  if (merged !== 2) parts.header.refuse('clip.vision.spatial_merge_size', '2', merged);
}

/** Qwen2-Audio: Whisper's encoder, two positions pooled, and a matrix. */
function checkQwen2Audio(parts: ProjectorParts): void {
  const { header, encoder } = parts;
  const { width } = encoder;
  const bands = parts.number('num_mel_bins', 0, 1, MAX_BANDS);
  for (const [i, from] of [bands, width].entries()) {
    parts.tensor(`a.conv1d.${i + 1}.weight`, [3, from, width], ['f32', 'f16']);
    parts.tensor(`a.conv1d.${i + 1}.bias`, [1, width]);
  }
  const name = 'a.position_embd.weight';
  const positions = header.tensor(name)?.shape[1] ?? POSITIONS;
  if (positions < POSITIONS) header.refuse(`the tensor ${name}`, `${POSITIONS} positions`, positions);
  parts.tensor(name, [width, positions]);
  parts.layers({
    isGeneral: true,
    mayBeSwapped: false,
    biases: ['q', 'v'],
    noBiases: ['k'],
    needsNorms: true,
  });
  parts.linear('mm.a.fc', width, { bias: 'needed' });
}
