/**
 * A graph -> one that outputs the keys and values of new tokens only. The exported graph outputs those of all tokens, and onnxruntime-node
 * would copy them at every step.
 */
import { attributeOf, type GraphFile, type GraphNode, makeNode } from './graph-file.ts';
import { Links } from './links.ts';

/** The operator that distinguishes the rows of a batch by their lengths. */
export const GROUPED = 'GroupQueryAttention';
/** Indexes of its inputs: past keys, and the lengths of the rows less one. */
const PAST_KEY = 3;
const LENGTHS = 5;
/** Opset of the operators that are added. */
const OPSET = 13;
/** Type numbers. */
export const FLOAT32 = 1;
const INT64 = 7;

/** A changed graph. */
export type FreshGraph = {
  readonly nodes: readonly GraphNode[];
  /** Names of all outputs. */
  readonly outputs: readonly string[];
  /** `present.*` -> the output that holds its new tokens. */
  readonly freshOf: ReadonlyMap<string, string>;
  /** Middle axes of these outputs: heads and new tokens, or new tokens and heads. */
  readonly layout: 'heads' | 'tokens';
};

/**
 * Returns the same graph with other outputs, or null if its structure is unknown. Two structures are known: past and new tokens joined by
 * `Concat`, and {@link GROUPED}. Past tokens may then be at any place in the past, distinguished by the mask: with `Concat`, positions must
 * be an input, and `hasWindow` (a sliding window) must be false.
 */
export function giveFresh(file: GraphFile, { hasWindow }: { hasWindow: boolean }): FreshGraph | null {
  if (file.hasBranches || file.opset < OPSET) return null;
  const canSpread = !hasWindow && file.inputs.has('position_ids') && file.inputs.has('attention_mask');
  const links = new Links(file.nodes);
  const added: GraphNode[] = [];
  const known = new Set<string>();
  const freshOf = new Map<string, string>();
  for (const present of file.outputs.keys()) {
    if (!/^present\.\d+\.(key|value)$/.test(present)) continue;
    const maker = links.maker(present);
    if (maker?.opType === 'Concat' && canSpread && isJoin(maker)) freshOf.set(present, maker.inputs[1]!);
    else if (maker?.opType === GROUPED && maker.inputs[PAST_KEY]) {
      const [heads] = attributeOf(maker, 'kv_num_heads');
      const lengths = maker.inputs[LENGTHS]!;
      const places = `fresh_places/${heads}/${lengths}`;
      if (!known.has(places))
        added.push(...placesOfFresh(lengths, heads!, { tokens: tokensInput(file), output: places }));
      known.add(places);
      freshOf.set(present, `fresh/${present}`);
      added.push(makeNode('GatherND', [present, places], [`fresh/${present}`], { batch_dims: 2 }));
    } else return null;
  }
  const outputs = [...file.outputs.keys()].map((name) => freshOf.get(name) ?? name);
  if (new Set(outputs).size < outputs.length) return null;
  return { nodes: [...file.nodes, ...added], outputs, freshOf, layout: 'heads' };
}

/** Returns the input whose first axes are rows and new tokens. */
function tokensInput({ inputs }: GraphFile): string {
  return inputs.has('input_ids') ? 'input_ids' : 'inputs_embeds';
}

/** Returns true if a node appends to the past along the axis of tokens. */
function isJoin(node: GraphNode): boolean {
  const { inputs } = node;
  const [axis] = attributeOf(node, 'axis');
  return inputs.length === 2 && inputs[0]!.startsWith('past_key_values.') && (axis === 2 || axis === -2);
}

/** Returns nodes that compute the columns of new tokens, (rows, heads, new tokens, 1): the last ones of each row. */
function placesOfFresh(
  lengths: string,
  kvHeads: number,
  { tokens, output }: { tokens: string; output: string },
): GraphNode[] {
  const name = (part: string): string => `${output}/${part}`;
  return [
    makeNode('Constant', [], [name('one')], { value_int: 1 }),
    makeNode('Constant', [], [name('column')], { value_ints: [-1, 1] }),
    makeNode('Constant', [], [name('rows')], { value_ints: [-1, 1, 1, 1] }),
    makeNode('Constant', [], [name('heads')], { value_ints: [1, kvHeads, 1, 1] }),
    makeNode('Shape', [tokens], [name('shape')]),
    makeNode('Gather', [name('shape'), name('one')], [name('count')], { axis: 0 }),
    makeNode('Sub', [name('one'), name('count')], [name('first')]),
    makeNode('Range', [name('first'), name('one'), name('one')], [name('range')]),
    makeNode('Reshape', [name('range'), name('column')], [name('offsets')]),
    makeNode('Cast', [lengths], [name('lengths')], { to: INT64 }),
    makeNode('Reshape', [name('lengths'), name('rows')], [name('last')]),
    makeNode('Add', [name('last'), name('offsets')], [name('places')]),
    makeNode('Expand', [name('places'), name('heads')], [output]),
  ];
}
