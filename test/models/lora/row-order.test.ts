import { expect, it } from 'vitest';
import {
  columnPlaces,
  inverse,
  pickColumns,
  pickRows,
  rowPlaces,
} from '../../../src/models/lora/row-order.ts';

const HYBRID = {
  architecture: 'qwen35',
  headCount: 4,
  kvHeadCount: 2,
  deltaNet: { keyHeads: 2, valueHeads: 4 },
};

// Heads of values: 0 and 1 read the first head of keys in Hugging Face's model, 0 and 2 in the GGUF file.
it.each([
  ['ssm_alpha', 4, [0, 2, 1, 3]],
  ['attn_gate', 8, [0, 1, 4, 5, 2, 3, 6, 7]],
  ['attn_qkv', 8, [0, 1, 2, 3, 4, 6, 5, 7]],
  ['attn_q', 8, null],
] as const)('the rows of %s of a delta net', (kind, rows, places) => {
  const found = rowPlaces(kind, rows, HYBRID);
  expect(found && [...found]).toEqual(places);
});

it('the columns that read a delta net', () => {
  const places = columnPlaces('ssm_out', 4, HYBRID);
  const rows = Float32Array.of(0, 1, 2, 3, 10, 11, 12, 13);
  const there = pickColumns(rows, places);
  expect([...there]).toEqual([0, 2, 1, 3, 10, 12, 11, 13]);
  expect(pickColumns(there, inverse(places))).toEqual(rows);
  expect(columnPlaces('attn_output', 4, HYBRID)).toBeNull();
});

it('rotated pairs lie side by side in the GGUF file', () => {
  const places = rowPlaces('attn_k', 8, { architecture: 'llama', headCount: 4, kvHeadCount: 2 });
  expect([...places!]).toEqual([0, 2, 1, 3, 4, 6, 5, 7]);
  expect([...pickRows(Float32Array.of(0, 1, 2, 3), 2, Int32Array.of(1, 0))]).toEqual([2, 3, 0, 1]);
});
