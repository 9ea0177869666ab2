/** Names of weight types -> the mixes of types that llama.cpp writes, by its numbers of them. */
import type { ModelExportRequest } from '../protocol/index.ts';

type Mix = {
  readonly fileType: number;
  /** Whether weights are kept in 32 bits on the way, as 16 could lose something. */
  readonly isWide?: boolean;
};

/** A name of them. */
export type ExportType = NonNullable<ModelExportRequest['type']>;

/** What a GGUF file can be written in. */
export const EXPORT_TYPES: Readonly<Record<ExportType, Mix>> = {
  f32: { fileType: 0, isWide: true },
  bf16: { fileType: 32, isWide: true },
  f16: { fileType: 1 },
  q8_0: { fileType: 7 },
  q6_k: { fileType: 18 },
  q5_k_m: { fileType: 17 },
  q5_k_s: { fileType: 16 },
  q5_1: { fileType: 9 },
  q5_0: { fileType: 8 },
  q4_k_m: { fileType: 15 },
  q4_k_s: { fileType: 14 },
  q4_1: { fileType: 3 },
  q4_0: { fileType: 2 },
  iq4_nl: { fileType: 25 },
  iq4_xs: { fileType: 30 },
  q3_k_l: { fileType: 13 },
  q3_k_m: { fileType: 12 },
  q3_k_s: { fileType: 11 },
  q2_k: { fileType: 10 },
};
