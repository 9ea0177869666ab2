/** Adapter weights as data: the LoRA factors of each trained linear layer, by its name in the GGUF file. */

/** One linear layer's factors: its output gains (alpha / rank) b (a x). */
export type LoraFactors = {
  readonly a: Float32Array; // (rank, in)
  readonly b: Float32Array; // (out, rank)
};

/** Factors by module name, for example `blk.0.attn_q`. */
export type AdapterWeights = Readonly<Record<string, LoraFactors>>;

/** The kinds of linear layers that can be trained. */
export const LINEAR_MODULES = [
  'attn_q',
  'attn_k',
  'attn_v',
  'attn_output',
  'ffn_gate',
  'ffn_up',
  'ffn_down',
] as const;
