/** The header of a projector file -> nothing, or an error about values that the decoder of pictures and sounds cannot compute with. */
import { checkMatrix, type GgufHeader, type ValueType } from '../../engine/gguf/index.ts';
import { PROJECTOR_KINDS } from './projector-kinds.ts';
import { type Encoder, encoderOf, ProjectorParts } from './projector-parts.ts';

/** Types of keys below `clip.`, by their last word. A key of another type would end the process. */
const KEY_TYPES: readonly (readonly [ValueType, readonly string[]])[] = [
  ['bool', ['has_vision_encoder', 'has_audio_encoder', 'has_gen_audio_encoder', 'use_gelu', 'use_silu']],
  ['string', ['projector_type', 'mm_patch_merge_type', 'model_variant']],
  ['i32', ['minicpmv_version']],
  ['f32', ['layer_norm_epsilon']],
  [
    'u32',
    [
      ...['embedding_length', 'feed_forward_length', 'block_count', 'projection_dim', 'expert_used_count'],
      ...['head_count', 'head_count_kv', 'head_dim', 'image_size', 'image_min_pixels', 'image_max_pixels'],
      ...['preproc_min_tiles', 'preproc_max_tiles', 'preproc_image_size', 'patch_size', 'scale_factor'],
      ...['query_side', 'window_side', 'spatial_merge_size', 'n_wa_pattern', 'window_size', 'num_mel_bins'],
      ...['minicpmv_query_num', 'stack_factor', 'chunk_size', 'conv_kernel_size', 'max_pos_emb'],
      ...['downsample_rate', 'num_quantizers', 'local_block_count', 'local_group_size', 'subsampling_factor'],
    ],
  ],
];
const TYPE_OF = new Map(KEY_TYPES.flatMap(([type, names]) => names.map((name) => [name, type] as const)));
/** Texts that the decoder reads from any file. */
const TEXTS = ['general.name', 'general.description'];
/** Tensors that are added to activations or multiplied with them, with one number per channel. */
const VECTOR = /(\.bias|norm\.weight|\.(pre_|post_)?ln\d?\.weight)$/;
/** Files with both senses, each with a projector of a different kind. */
const BOTH: Readonly<Record<string, Readonly<Partial<Record<Encoder['sense'], string>>>>> = {
  'qwen2.5o': { vision: 'qwen2.5vl_merger', audio: 'qwen2a' },
};

/**
 * Checks a projector file: its keys and tensors against the operands of the decoder's graph of its kind. For kinds without rules here,
 * checks the common parts.
 * @throws OnpolicyError `MODEL_INVALID`
 */
export function checkProjector(header: GgufHeader): void {
  for (const key of TEXTS) header.text(key);
  for (const [key, { type }] of header.values) {
    const wanted = key.startsWith('clip.') ? TYPE_OF.get(key.slice(key.lastIndexOf('.') + 1)) : undefined;
    if (wanted !== undefined && wanted !== type)
      header.refuse(key, `a value of type ${wanted}`, `one of type ${type}`);
  }
  if (header.number('clip.use_gelu', { type: 'bool' }) && header.number('clip.use_silu', { type: 'bool' }))
    header.fail('clip.use_gelu and clip.use_silu: expected one of them at most');
  for (const name of header.tensors.keys())
    if (VECTOR.test(name)) header.tensor(name, { types: ['f32'] });
    else checkMatrix(header, name);
  const has = (sense: string): boolean => header.number(`clip.has_${sense}_encoder`, { type: 'bool' }) === 1;
  if (!has('vision') && !has('audio'))
    header.fail('expected a projector: clip.has_vision_encoder or clip.has_audio_encoder');
  for (const sense of ['vision', 'audio'] as const) if (has(sense)) checkEncoder(header, sense);
}

function checkEncoder(header: GgufHeader, sense: Encoder['sense']): void {
  const encoder = encoderOf(header, sense);
  const named = header.text('clip.projector_type') || header.text(`clip.${sense}.projector_type`);
  const kind = header.need('clip.projector_type', named);
  const rules = PROJECTOR_KINDS.get(BOTH[kind]?.[sense] ?? kind);
  if (rules === undefined) return;
  if (rules.sense !== sense) header.refuse('clip.projector_type', `a kind of projector for ${sense}`, kind);
  rules.check(new ProjectorParts(header, encoder));
}
