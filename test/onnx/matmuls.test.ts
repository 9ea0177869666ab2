/** Matmuls of one tensor become one, where that gives the same numbers. */
import { describe, expect, it } from 'vitest';
import { type GraphNode, makeNode, type WeightShape } from '../../src/onnx/graph/graph-file.ts';
import { joinMatmuls } from '../../src/onnx/graph/matmuls.ts';

const FLOAT32 = 1;
const matrix = (height: number, width: number, type = FLOAT32): WeightShape => ({
  type,
  sizes: [height, width],
});
const matmul = (input: string, weight: string): GraphNode =>
  makeNode('MatMul', [input, weight], [`${weight}_y`]);
const counts = (nodes: readonly GraphNode[]): Record<string, number> => {
  const found: Record<string, number> = {};
  for (const { opType } of nodes) found[opType] = (found[opType] ?? 0) + 1;
  return found;
};

describe('matmuls', () => {
  const three = ['q', 'k', 'v'].map((name) => matmul('x', name));
  const weights = new Map([
    ['q', matrix(8, 8)],
    ['k', matrix(8, 2)],
    ['v', matrix(8, 2)],
  ]);

  it('of one tensor with three matrices become one, which is split into what they gave', () => {
    const nodes = joinMatmuls(three, weights);
    expect(counts(nodes)).toEqual({ Constant: 1, Concat: 1, MatMul: 1, Split: 1 });
    const [split] = nodes.filter(({ opType }) => opType === 'Split');
    expect(split!.outputs).toEqual(['q_y', 'k_y', 'v_y']);
    const [widths] = nodes.filter(({ outputs }) => outputs[0] === split!.inputs[1]);
    expect(widths!.attributes[0]!.ints).toEqual([8, 2, 2]);
    const [joined] = nodes.filter(({ opType }) => opType === 'Concat');
    expect(joined!.inputs).toEqual(['q', 'k', 'v']);
  });

  it.each([
    ['two only', three.slice(1), weights],
    ['another tensor', [...three.slice(1), matmul('z', 'q')], weights],
    ['no weight', three, new Map([...weights].slice(1))],
    ['a weight of another type', three, new Map([...weights, ['q', matrix(8, 8, 10)]])],
    [
      'a weight of three dimensions',
      three,
      new Map([...weights, ['q', { type: FLOAT32, sizes: [1, 8, 8] }]]),
    ],
  ] as const)('stay as they are: %s', (_, nodes, given) => {
    expect(joinMatmuls(nodes, given)).toEqual(nodes);
  });

  it('of bytes stay as they are where a scale is not known, or a bias is added', () => {
    const quantized = makeNode('DynamicQuantizeLinear', ['x'], ['bytes', 'scale', 'zero']);
    const nodes = (more: readonly string[]): GraphNode[] => [
      quantized,
      ...['q', 'k', 'v'].map((name) =>
        makeNode(
          'MatMulIntegerToFloat',
          ['bytes', name, 'scale', `${name}_s`, 'zero', '', ...more],
          [`${name}_y`],
        ),
      ),
    ];
    const scales = ['q', 'k', 'v'].map((name): [string, WeightShape] => [
      `${name}_s`,
      { type: FLOAT32, sizes: [] },
    ]);
    const known = new Map([...weights, ...scales]);
    expect(counts(joinMatmuls(nodes([]), known))).toMatchObject({ MatMulIntegerToFloat: 1, Split: 1 });
    expect(joinMatmuls(nodes([]), weights)).toEqual(nodes([]));
    expect(joinMatmuls(nodes(['bias']), known)).toEqual(nodes(['bias']));
  });
});
