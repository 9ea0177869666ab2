/** Expert matrices in GGUF files <-> the paths of each expert's layer in Hugging Face's models, for those with one layer per expert. */
import type { AdapterWeights } from '../../engine/native/index.ts';

type Names = { readonly path: string; readonly kinds: Readonly<Record<string, string>> };

const PLAIN: Names = {
  path: 'mlp.experts',
  kinds: { ffn_gate_exps: 'gate_proj', ffn_up_exps: 'up_proj', ffn_down_exps: 'down_proj' },
};
const MIXTRAL: Names = {
  path: 'block_sparse_moe.experts',
  kinds: { ffn_gate_exps: 'w1', ffn_up_exps: 'w3', ffn_down_exps: 'w2' },
};
/** Other architectures have one parameter for all experts. PEFT cannot adapt a part of it under a separate name. */
const NAMES: Readonly<Record<string, Names>> = {
  llama: MIXTRAL,
  qwen3moe: PLAIN,
  qwen3next: PLAIN,
  glm4moe: PLAIN,
};

/** Returns the path of an expert's layer, or of a pattern of experts. */
export function expertPath(kind: string, expert: number | string, architecture: string): string | undefined {
  const names = NAMES[architecture];
  const end = names?.kinds[kind];
  return end === undefined ? undefined : `${names!.path}.${expert}.${end}`;
}

/** Returns the matrix and the expert of a path. Returns null if it is not a path of an expert. */
export function expertOf(path: string, architecture: string): { kind: string; expert: number } | null {
  const names = NAMES[architecture];
  const [, start, expert, end] = /^(.+)\.(\d{1,4})\.(\w+)$/.exec(path) ?? [];
  const kind = Object.entries(names?.kinds ?? {}).find(([, name]) => name === end)?.[0];
  return start === names?.path && kind ? { kind, expert: Number(expert) } : null;
}

/** Returns the first module whose adapter has no name in PEFT's files. Returns null if all have one. */
export function unnamedModule(weights: AdapterWeights, architecture: string): string | null {
  if (NAMES[architecture]) return null;
  return Object.entries(weights).find(([, { experts = 1 }]) => experts > 1)?.[0] ?? null;
}
