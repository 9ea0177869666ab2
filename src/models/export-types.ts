/** Names of weight types -> llama.cpp's numbers of the mixes of types that it writes. */
import type { ModelExportRequest } from '../protocol/index.ts';

export type ExportType = NonNullable<ModelExportRequest['type']>;

/** What a GGUF file can be written in. */
export const EXPORT_TYPES: Readonly<Record<ExportType, number>> = {
  f32: 0,
  bf16: 32,
  f16: 1,
  q8_0: 7,
  q6_k: 18,
  q5_k_m: 17,
  q5_k_s: 16,
  q5_1: 9,
  q5_0: 8,
  q4_k_m: 15,
  q4_k_s: 14,
  q4_1: 3,
  q4_0: 2,
  iq4_nl: 25,
  iq4_xs: 30,
  q3_k_l: 13,
  q3_k_m: 12,
  q3_k_s: 11,
  q2_k: 10,
};
