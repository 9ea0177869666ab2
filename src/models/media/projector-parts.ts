/** The header of a projector file -> the sizes of an encoder in it, and its tensors, checked against their use. */
import type { GgufHeader, GgufTensor } from '../../engine/gguf/index.ts';

export type Encoder = {
  readonly sense: 'vision' | 'audio';
  readonly width: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headSize: number;
  /** Sides of a picture and of a patch of it, in pixels. */
  readonly image: number;
  readonly patch: number;
};

/** Limits of the decoder. */
const MAX_IMAGE = 8192;
const MAX_PATCH = 65_535;
/** Highest number of layers: a graph has 8,192 nodes, and a layer takes 40. */
const MAX_LAYERS = 200;

export function encoderOf(header: GgufHeader, sense: Encoder['sense']): Encoder {
  const key = (name: string): string => `clip.${sense}.${name}`;
  const given = (name: string, min = 0, max = 2 ** 31 - 1): number =>
    header.need(key(name), header.number(key(name), { min, max }));
  const width = given('embedding_length', 1);
  const heads = given('attention.head_count');
  const epsilon = key('attention.layer_norm_epsilon');
  header.need(epsilon, header.number(epsilon, { type: 'f32', min: 0, max: 1 }));
  for (const name of ['feed_forward_length', 'projection_dim']) given(name);
  const isVision = sense === 'vision';
  if (isVision) {
    list(header, key('image_mean'));
    if (!list(header, key('image_std')).every((value) => value > 0))
      header.fail(`${key('image_std')}: expected numbers above 0`);
  } else given('num_mel_bins', 1);
  return {
    sense,
    width,
    layers: given('block_count', 0, MAX_LAYERS),
    heads,
    kvHeads: header.number(key('attention.head_count_kv')) ?? heads,
    headSize: header.number(key('attention.head_dim')) || Math.floor(width / Math.max(heads, 1)),
    image: isVision ? given('image_size', 0, MAX_IMAGE) : 0,
    patch: isVision ? given('patch_size', 1, MAX_PATCH) : 1,
  };
}

/** Returns a list with one number for each color. */
function list(header: GgufHeader, key: string): number[] {
  const numbers = Array.from(header.need(key, header.array(key, 'f32')).numbers);
  if (numbers.length < 3 || !numbers.every(Number.isFinite))
    header.refuse(key, 'three finite numbers', numbers.slice(0, 4).join(', '));
  return numbers;
}

/** Differences between the layers of a kind and a plain transformer's. */
export type LayerRules = {
  /**
   * True if one matrix may compute queries, keys and values, if there may be fewer key and value heads, and if further norms may follow.
   */
  readonly isGeneral: boolean;
  /** True if older files swap the names of the two feed-forward matrices. */
  readonly mayBeSwapped: boolean;
  /** Biases that queries, keys and values must have (`qkv`: in one matrix), and biases that they must not have. */
  readonly biases?: readonly string[];
  readonly noBiases?: readonly string[];
  readonly needsNorms?: boolean;
};

/** Tensors of a file. Methods throw if a tensor is missing or does not fit. */
export class ProjectorParts {
  readonly header: GgufHeader;
  readonly encoder: Encoder;

  constructor(header: GgufHeader, encoder: Encoder) {
    this.header = header;
    this.encoder = encoder;
  }

  /** Returns a number of the encoder, from the keys with its prefix. */
  number(name: string, otherwise: number, min = 0, max = 2 ** 31 - 1): number {
    return this.header.number(`clip.${this.encoder.sense}.${name}`, { min, max }) ?? otherwise;
  }

  has(name: string): boolean {
    return this.header.tensors.has(name);
  }

  /** Requires a tensor of this shape. The types of matrices are checked elsewhere, for all tensors. */
  tensor(name: string, shape: readonly number[], types: readonly string[] | 'matrix' = ['f32']): void {
    const rule = types === 'matrix' ? { shape } : { types, shape };
    this.header.need(`the tensor ${name}`, this.header.tensor(name, rule));
  }

  /** Checks a tensor if it is present. */
  optional(name: string, shape: readonly number[]): void {
    this.header.tensor(name, { types: ['f32'], shape });
  }

  present(name: string): void {
    this.header.need(`the tensor ${name}`, this.header.tensor(name));
  }

  missing(name: string): void {
    if (this.has(name)) this.header.fail(`the tensor ${name}: expected none in a projector of this kind`);
  }

  /** Requires a matrix with this many inputs, and its bias. Returns the number of outputs. */
  linear(name: string, width: number, { rows, bias }: { rows?: number; bias?: 'needed' } = {}): number {
    const weight = `${name}.weight`;
    const found: GgufTensor = this.header.need(`the tensor ${weight}`, this.header.tensor(weight));
    const made = rows ?? found.shape[1]!;
    this.tensor(weight, [width, made], 'matrix');
    if (bias === 'needed') this.tensor(`${name}.bias`, [made]);
    else this.optional(`${name}.bias`, [made]);
    return made;
  }

  norm(name: string, size: number, isNeeded = false): void {
    for (const part of ['weight', 'bias'])
      if (isNeeded) this.tensor(`${name}.${part}`, [size]);
      else this.optional(`${name}.${part}`, [size]);
  }

  layers(rules: LayerRules): void {
    const { sense, width, layers, heads, kvHeads, headSize } = this.encoder;
    if (layers < 1) this.header.refuse(`clip.${sense}.block_count`, 'at least 1', layers);
    if (heads < 1 || headSize < 1)
      this.header.fail(`clip.${sense}.attention.head_count: expected 1 to ${width}, got ${heads}`);
    if (rules.isGeneral && (kvHeads < 1 || heads % kvHeads !== 0))
      this.header.refuse(
        `clip.${sense}.attention.head_count_kv`,
        `a divisor of the ${heads} heads of attention`,
        kvHeads,
      );
    const prefix = sense === 'vision' ? 'v' : 'a';
    this.norm(`${prefix}.pre_ln`, width);
    this.norm(`${prefix}.post_ln`, width);
    for (let i = 0; i < layers; i++) {
      const layer = `${prefix}.blk.${i}.`;
      for (const name of ['ln1', 'ln2']) this.norm(layer + name, width, rules.needsNorms);
      this.#attention(layer, rules);
      this.#feedForward(layer, rules);
      if (rules.isGeneral)
        for (const name of ['ls1', 'ls2', 'out_scale', 'attn_post_norm', 'ffn_post_norm'])
          this.optional(`${layer}${name}.weight`, [width]);
    }
  }

  #attention(layer: string, { isGeneral, biases = [], noBiases = [] }: LayerRules): void {
    const { width, heads, kvHeads, headSize } = this.encoder;
    const rows = { q: heads * headSize, k: kvHeads * headSize, v: kvHeads * headSize };
    if (!isGeneral) rows.k = rows.v = rows.q;
    const needsFused = biases.includes('qkv');
    const isFused = needsFused || (isGeneral && this.has(`${layer}attn_qkv.weight`));
    if (isFused)
      this.linear(`${layer}attn_qkv`, width, { rows: 3 * rows.q, ...(needsFused ? { bias: 'needed' } : {}) });
    else
      for (const [name, made] of Object.entries(rows)) {
        this.linear(`${layer}attn_${name}`, width, {
          rows: made,
          ...(biases.includes(name) ? { bias: 'needed' } : {}),
        });
        if (noBiases.includes(name)) this.missing(`${layer}attn_${name}.bias`);
      }
    if (isGeneral) {
      // A norm per head, or one over all heads.
      const query = `${layer}attn_q_norm.weight`;
      const isOfHeads = isFused || this.header.tensor(query)?.shape[0] === headSize;
      this.optional(query, [isOfHeads ? headSize : rows.q]);
      this.optional(`${layer}attn_k_norm.weight`, [isOfHeads ? headSize : rows.k]);
    }
    this.linear(`${layer}attn_out`, rows.q, { rows: width });
  }

  #feedForward(layer: string, { mayBeSwapped }: LayerRules): void {
    const { width } = this.encoder;
    this.missing(`${layer}ffn_gate_exps.weight`);
    const [up, down] =
      mayBeSwapped && this.header.tensor(`${layer}ffn_down.weight`)?.shape[0] === width
        ? ['ffn_down', 'ffn_up']
        : ['ffn_up', 'ffn_down'];
    const hidden = this.linear(layer + up, width);
    this.linear(layer + down, hidden, { rows: width });
    if (this.has(`${layer}ffn_gate.weight`)) this.linear(`${layer}ffn_gate`, width, { rows: hidden });
  }

  /** Checks the tensors that cut a picture into patches. Returns the number of patches per side. */
  patches(names: readonly string[] = ['v.patch_embd.weight']): number {
    const { width, image, patch } = this.encoder;
    for (const name of names) this.tensor(name, [patch, patch, 3, width], ['f32', 'f16']);
    this.optional('v.patch_embd.bias', [width]);
    return Math.floor(image / patch);
  }
}
