/** How graphs are changed when they are loaded: which are fused, which give new tokens alone, and which stay as they are. */
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readFolder } from '../../src/onnx/folder.ts';
import { giveFresh } from '../../src/onnx/graph/fresh.ts';
import { fuseAttention } from '../../src/onnx/graph/fuse.ts';
import { readGraphFile } from '../../src/onnx/graph/graph-file.ts';
import { closeAll, type GRAPHS, layoutOf, modelOf, whyNoOnnx } from '../models/formats/engines.ts';

afterAll(closeAll);

describe.skipIf(whyNoOnnx() !== null)('a graph', () => {
  const read = (name: keyof typeof GRAPHS) => {
    const folder = modelOf(name);
    return { graph: readGraphFile(path.join(folder, 'onnx/model.onnx')), sizes: readFolder(folder).sizes };
  };

  it('of separate operators gets one operator for attention and for each norm', () => {
    const { graph, sizes } = read('ONNX, padded on the left');
    const fused = fuseAttention(graph, sizes)!;
    const count = (opType: string) => fused.nodes.filter((node) => node.opType === opType).length;
    const layers = fused.freshOf.size / 2;
    expect(count('GroupQueryAttention')).toBe(layers);
    expect(count('SimplifiedLayerNormalization')).toBe(2 * layers + 1);
    expect(fused.nodes.filter(({ inputs }) => inputs.includes('fused/flat'))).toHaveLength(0);
    // Queries, keys and values are one product; beside it are output, gate, up and down.
    expect(count('MatMul')).toBe(5 * layers);
    expect(count('Split')).toBe(layers);
    expect(count('Softmax')).toBe(0);
    expect(fused.outputs).toHaveLength(graph.outputs.size);
  });

  it('of bytes gets one product for queries, keys and values', () => {
    const { file, sizes } = readFolder(layoutOf('torch, q8'));
    const { nodes, freshOf } = fuseAttention(readGraphFile(file), sizes)!;
    const joined = nodes.filter(({ inputs }) => inputs[1]?.startsWith('joined/'));
    const products = joined.filter(({ opType }) => opType === 'MatMulIntegerToFloat');
    expect(products).toHaveLength(freshOf.size / 2);
    // Scales and origins, too, are there for each column.
    for (const { inputs } of products)
      expect([3, 5].every((place) => inputs[place]!.startsWith('joined/'))).toBe(true);
  });

  it.each([{ architecture: 'gpt2' }, { hasWindow: true }, { queryHeads: 5 }])(
    'is not fused where attention may be another one: %o',
    (change) => {
      const { graph, sizes } = read('ONNX, padded on the left');
      expect(fuseAttention(graph, { ...sizes, ...change })).toBeNull();
    },
  );

  it.each([
    ['ONNX, fused attention, weights beside the graph', true],
    ['ONNX, 16-bit cache', true],
    ['ONNX, no position_ids', false],
  ] as const)('%s: gives new tokens alone: %s', (name, isFresh) => {
    const { graph, sizes } = read(name);
    expect(fuseAttention(graph, sizes)).toBeNull();
    expect(giveFresh(graph, sizes) !== null).toBe(isFresh);
  });

  it('with a window and separate operators stays as it is', () => {
    const { graph } = read('ONNX, padded on the left');
    expect(giveFresh(graph, { hasWindow: true })).toBeNull();
  });
});
