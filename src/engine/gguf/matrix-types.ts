/**
 * The tensors of a text model -> nothing, or an error about a tensor whose type the engine cannot compute with. It has operations for few
 * combinations of types, and ends the process at others.
 */
import type { GgufHeader } from './header.ts';

/** Types of intermediate results, which cannot be multiplied with states. All other types can. */
const NOT_MULTIPLIED = new Set(['q8_1', 'q8_K', 'i8', 'i16', 'i32', 'i64', 'f64']);
/** Lists of ids, which some models look up. */
const LISTS = /(^|\.)(d2t|masked_embd_ordering|ffn_gate_tid2eid)(\.weight)?$/;
/** Tensors with more than one dimension that are no factors of a matrix product: they are added to states, scale them or enter a scan. */
const NO_MATRIX =
  /(\.bias|norm(_\d)?(\.weight)?|\.(ssm_(a|d|conv1d(_[qkv])?)|shortconv\.conv|time_mix_(first|lerp_\w+|ln|decay|[wav]0|k_[ka]|r_k)|channel_mix_lerp_\w+|attn_sinks|altup_correct_scale|\w*conv_base|ple_conv1d)(\.weight)?|^token_types\.weight)$/;

/** @throws OnpolicyError `MODEL_INVALID` */
export function checkTensorTypes(header: GgufHeader): void {
  for (const [name, { shape }] of header.tensors) {
    if (LISTS.test(name)) continue;
    const isVector = shape.slice(1).every((size) => size === 1);
    if (isVector || NO_MATRIX.test(name)) header.tensor(name, { types: ['f32'] });
    else checkMatrix(header, name);
  }
}

/** Throws if no matrix product of the engine accepts a tensor's type. */
export function checkMatrix(header: GgufHeader, name: string): void {
  const type = header.tensors.get(name)?.type;
  if (type && NOT_MULTIPLIED.has(type.name))
    header.refuse(`the tensor ${name}`, 'numbers of a type that weights have', type.name);
}
