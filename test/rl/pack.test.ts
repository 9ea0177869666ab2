import { describe, expect, it } from 'vitest';
import { policyLoss } from '../../src/rl/caller-losses.ts';
import { readRow } from '../../src/rl/loss-row.ts';
import { defaultRowLength, packRows, type TrainingRow, type WeightedSequence } from '../../src/rl/pack.ts';
import { resolveSettings } from '../../src/rl/settings.ts';

/** Tokens from `trainedFrom` on are trained; their log-probabilities are minus their index. */
function sequence(
  tokens: number[],
  trainedFrom: number,
  group = 0,
  advantage = 1,
  weight = 1,
): WeightedSequence {
  return {
    tokens: Int32Array.from(tokens),
    isTrained: Uint8Array.from(tokens, (_, i) => (i >= trainedFrom ? 1 : 0)),
    logprobs: Float64Array.from(tokens, (_, i) => -i),
    group,
    advantage,
    weight,
  };
}

const plain = (rows: ReturnType<typeof packRows>['rows']) =>
  rows.map(({ row, observations: _, ...columns }) =>
    Object.fromEntries(Object.entries({ ...row, ...columns }).map(([name, column]) => [name, [...column!]])),
  );

describe('packRows', () => {
  it('writes the columns of the loss once, into memory that its thread reads in place', () => {
    const [{ row: _, observations: __, ...columns }] = packRows(
      [sequence([1, 2, 3, 4], 2), sequence([5, 6, 7], 1, 1)],
      64,
    ).rows as [TrainingRow];
    for (const [name, column] of Object.entries(columns))
      expect(column.buffer, name).toBeInstanceOf(SharedArrayBuffer);
    const inputs = {
      new_logprobs: Float64Array.of(-1, -2, -3, -4),
      old_logprobs: columns.oldLogprobs,
      advantages: columns.advantages,
      weights: columns.weights,
      sequence_ids: columns.sequenceIds,
      mask: Uint8Array.of(1, 1, 0, 1),
    };
    const before = structuredClone(Object.values(inputs).map((column) => [...column]));
    const read = readRow(inputs, resolveSettings(null));
    expect(read.fresh).toBe(inputs.new_logprobs);
    expect(read.advantages).toBe(columns.advantages);
    policyLoss(inputs);
    expect(Object.values(inputs).map((column) => [...column])).toEqual(before);
  });

  it('keeps the sequences of a unit in one row, and numbers them by it', () => {
    const pair = (group: number) =>
      [1, 2].map((token) => ({ ...sequence([9, token, token], 1, group), unit: group + 5 }));
    const { rows } = packRows([...pair(0), ...pair(1)], 8); // a pair takes 5 with its prompt shared
    expect(plain(rows).map(({ sequenceIds }) => sequenceIds)).toEqual([
      [5, 5, 5, 5],
      [6, 6, 6, 6],
    ]);
    expect(defaultRowLength([...pair(0), ...pair(1)], 0)).toBe(2048);
    expect(() => packRows(pair(0), 4)).toThrow('packed_sequence_length: expected at least 5');
  });

  it('stores the prompt of a group once', () => {
    const { rows } = packRows([sequence([1, 2, 3, 4], 2, 0, 0.5, 2), sequence([1, 2, 5], 2, 0, -0.5, 4)], 64);
    expect(plain(rows)).toEqual([
      {
        tokens: [1, 2, 3, 4, 5],
        positions: [0, 1, 2, 3, 2],
        groupIds: [0, 0, 1, 1, 2],
        parentIds: [0, 0, 0, 0, 0],
        logitRows: [1, 2, 1],
        targetTokens: [3, 4, 5],
        oldLogprobs: [-2, -3, -2],
        advantages: [0.5, 0.5, -0.5],
        weights: [2, 2, 4],
        sequenceIds: [0, 0, 1],
      },
    ]);
  });

  it('shares no token that is trained on, and nothing between groups', () => {
    const { rows } = packRows(
      [sequence([1, 2, 2], 1), sequence([1, 2, 3], 1), sequence([1, 2, 3], 1, 1)],
      64,
    );
    expect(plain(rows)[0]).toMatchObject({
      tokens: [1, 2, 2, 2, 3, 1, 2, 3],
      groupIds: [0, 1, 1, 2, 2, 3, 3, 3],
      parentIds: [0, 0, 0, 0, 0, 3, 3, 3],
    });
  });

  it('repeats the prompt in a further row when the answers do not fit into one', () => {
    const { rows } = packRows(
      [3, 4, 5].map((last) => sequence([1, 2, last, last], 2)),
      6,
    );
    expect(plain(rows).map(({ tokens }) => tokens)).toEqual([
      [1, 2, 3, 3, 4, 4],
      [1, 2, 5, 5],
    ]);
  });

  it('cuts what is too long, and counts it', () => {
    const { rows, truncatedCount } = packRows(
      [sequence([1, 2, 3, 4, 5], 2), sequence([1, 2, 3, 4, 5, 6], 5, 1)],
      4,
    );
    expect(truncatedCount).toBe(2);
    expect(plain(rows)).toMatchObject([{ tokens: [1, 2, 3, 4], targetTokens: [3, 4] }]);
  });

  it('leaves out what trains nothing', () => {
    expect(packRows([sequence([1, 2], 2)], 64).rows).toEqual([]);
  });

  it('sees through the mask what each sequence would see alone', () => {
    const sequences = [
      sequence([1, 2, 3, 4, 5], 3),
      sequence([1, 2, 3, 6], 3),
      sequence([1, 2, 7], 2, 1),
      sequence([8, 9], 1, 2),
    ];
    const { rows } = packRows(sequences, 64);
    const { row, sequenceIds } = rows[0]!;
    const seen = (i: number) =>
      [...row.tokens.keys()].filter(
        (j) => j <= i && (row.groupIds[j] === row.groupIds[i] || row.groupIds[j] === row.parentIds[i]),
      );
    row.logitRows.forEach((place, target) => {
      const whole = sequences[sequenceIds[target]!]!.tokens;
      const context = seen(place);
      expect(context.map((j) => row.tokens[j])).toEqual([...whole.subarray(0, context.length)]);
      expect(context.map((j) => row.positions[j])).toEqual([...context.keys()]);
      expect(whole[context.length]).toBe(row.targetTokens[target]);
    });
  });
});

describe('defaultRowLength', () => {
  it.each([
    [10, 32768, 2048],
    [2049, 32768, 4096],
    [10, 1024, 1024],
    [3000, 0, 4096],
  ])('a longest sequence of %d in a context of %d: %d', (longest, context, expected) => {
    expect(defaultRowLength([sequence(Array(longest).fill(1), 1)], context)).toBe(expected);
  });
});
