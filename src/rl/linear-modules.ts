/** The kinds of linear layers that can be trained, by their names in a GGUF file. */
export const LINEAR_MODULES = [
  'attn_q',
  'attn_k',
  'attn_v',
  'attn_qkv',
  'attn_output',
  'ffn_gate',
  'ffn_up',
  'ffn_down',
] as const;
