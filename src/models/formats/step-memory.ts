/** A model's tensors -> how many numbers a step holds at a time for each of its rows: the largest intermediate results of a layer. */

/** Sizes of a tensor, innermost first. */
type Shapes = Readonly<Record<string, readonly number[]>>;

const BLOCK = /^blk\.(\d+)\.(.+)\.weight$/;

/**
 * Returns the numbers for one row. `used` is the number of experts that compute it. Measured on the models of
 * test/models/formats/memory.native.slow.test.ts.
 */
export function numbersPerRow(shapes: Shapes, width: number, used: number): number {
  const blocks = new Map<string, Map<string, number>>();
  for (const [name, [, outputs = 1, experts = 1]] of Object.entries(shapes)) {
    const [, layer, part] = BLOCK.exec(name) ?? [];
    if (layer === undefined || part === undefined) continue;
    if (!blocks.has(layer)) blocks.set(layer, new Map());
    blocks.get(layer)!.set(part, outputs * (experts > 1 ? used : 1));
  }
  const widest = Math.max(0, ...Array.from(blocks.values(), (block) => blockNumbers(block, width)));
  const inputs = shapes['per_layer_model_proj.weight']?.[1] ?? 0; // one of each layer, all computed at the start
  return Math.max(4 * inputs, widest + inputs) + 3 * width;
}

function blockNumbers(outputs: ReadonlyMap<string, number>, width: number): number {
  const of = (...parts: string[]): number => parts.reduce((sum, part) => sum + (outputs.get(part) ?? 0), 0);
  const isGated = of('ffn_gate', 'ffn_gate_exps') > 0;
  const feedForward = (isGated ? 2 : 1.5) * of('ffn_up', 'ffn_up_exps', 'ffn_gate_up_exps');
  const attention =
    3 * of('attn_q', 'attn_q_b') +
    2 * of('attn_k', 'attn_v') +
    of('attn_qkv', 'indexer.attn_q_b', 'indexer.q_proj');
  const shifted = outputs.has('time_mix_a1') ? 20 * width : outputs.has('time_mix_key') ? 12 * width : 0;
  const state = Math.max(2.7 * of('ssm_in'), shifted);
  return Math.max(feedForward + (outputs.has('ffn_gate_inp') ? width : 0), attention, state);
}
