import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AdapterWeights } from '../../src/engine/native/index.ts';
import type { PackedRow } from '../../src/protocol/index.ts';
import { openTrainer, type Trainer } from '../../src/rl/trainer.ts';
import { gradientsOfRow } from './gradients-of-row.ts';
import { randomAdapter } from './random-adapter.ts';
import { normals, packAnswers, writeTinyModel } from './tiny-model.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-long-rows-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));
const model = path.join(folder, 'tiny.gguf');
beforeAll(() =>
  writeTinyModel(model, { architecture: 'qwen3', type: 'f32', layers: 2, width: 64, hidden: 64 }),
);

/** The largest difference of both gradients, over the largest entry. */
function distance(got: AdapterWeights, expected: AdapterWeights): number {
  let [difference, largest] = [0, 0];
  for (const [module, factors] of Object.entries(expected))
    for (const factor of ['a', 'b'] as const)
      for (const [i, value] of factors[factor].entries()) {
        difference = Math.max(difference, Math.abs(value - got[module]![factor][i]!));
        largest = Math.max(largest, Math.abs(value));
      }
  return difference / largest;
}

/** Gradients of rows one after the other, with a loss that is the sum of all log-probabilities. */
async function gradientsOfRows(trainer: Trainer, rows: readonly PackedRow[]): Promise<AdapterWeights> {
  for (const row of rows) {
    await trainer.forward(row);
    await trainer.backward(new Float32Array(row.targetTokens.length).fill(1));
  }
  const gradients = trainer.gradients();
  await trainer.zeroGradients();
  return gradients;
}

/** Some answers of a row of `packAnswers`, with their prompt, as a row. */
function someAnswers(row: PackedRow, first: number, count: number): PackedRow {
  const isKept = (group: number) => group === 0 || (group >= first && group < first + count);
  const kept = [...row.groupIds.keys()].filter((i) => isKept(row.groupIds[i]!));
  const places = new Map(kept.map((i, place) => [i, place]));
  const targets = [...row.logitRows.keys()].filter((t) => isKept(answerOf(row, t)));
  const pick = (column: ArrayLike<number>) => Int32Array.from(kept, (i) => column[i]!);
  return {
    tokens: pick(row.tokens),
    positions: pick(row.positions),
    groupIds: pick(row.groupIds),
    parentIds: pick(row.parentIds),
    logitRows: Int32Array.from(targets, (t) => places.get(row.logitRows[t]!)!),
    targetTokens: Int32Array.from(targets, (t) => row.targetTokens[t]!),
  };
}

/** The group of a target's token: every token of an answer is a target, in the row's order. */
function answerOf(row: PackedRow, target: number): number {
  return row.groupIds[row.tokens.length - row.targetTokens.length + target]!;
}

it('trains on a row of 32,768 tokens with answers of 70 tokens as on rows of some of its answers', async () => {
  const prompt = 8;
  const answers = Array<number>(468).fill(70);
  const whole = packAnswers(prompt, answers);
  expect(whole.tokens.length).toBe(32_768);
  await using trainer = await openTrainer({ model, gpu: false, rank: 4 });
  await trainer.loadAdapter(randomAdapter(trainer, normals(5), 0.02));
  const parts = Array.from({ length: 12 }, (_, part) => someAnswers(whole, 1 + part * 39, 39));
  expect(parts.reduce((sum, { targetTokens }) => sum + targetTokens.length, 0)).toBe(
    whole.targetTokens.length,
  );
  const got = await gradientsOfRows(trainer, [whole]);
  expect(distance(got, await gradientsOfRows(trainer, parts))).toBeLessThan(1e-4);
}, 300_000);

it('trains on sequences whose pieces alternate in a row as on each alone', async () => {
  // Each block of queries sees pieces of its sequences with those of others between them.
  const sequences = 24;
  const piece = 32;
  const pieces = 12;
  const size = sequences * piece * pieces;
  const sequenceOf = (i: number) => Math.floor(i / piece) % sequences;
  const positionOf = (i: number) => Math.floor(i / (piece * sequences)) * piece + (i % piece);
  const tokens = Int32Array.from({ length: size }, (_, i) => (i * 37) % 250);
  const rowOf = (places: readonly number[]): PackedRow => {
    const placeOf = new Map(places.map((i, place) => [`${sequenceOf(i)} ${positionOf(i)}`, place]));
    const targets = places.filter((i) => positionOf(i) > 0);
    const groupIds = Int32Array.from(places, sequenceOf);
    return {
      tokens: Int32Array.from(places, (i) => tokens[i]!),
      positions: Int32Array.from(places, positionOf),
      groupIds,
      parentIds: groupIds,
      logitRows: Int32Array.from(targets, (i) => placeOf.get(`${sequenceOf(i)} ${positionOf(i) - 1}`)!),
      targetTokens: Int32Array.from(targets, (i) => tokens[i]!),
    };
  };
  const all = [...tokens.keys()];
  await using trainer = await openTrainer({ model, gpu: false, rank: 4 });
  await trainer.loadAdapter(randomAdapter(trainer, normals(5), 0.02));
  const whole = rowOf(all);
  const alone = Array.from({ length: sequences }, (_, s) => rowOf(all.filter((i) => sequenceOf(i) === s)));
  const gradient = new Float32Array(whole.targetTokens.length).fill(1);
  const got = await gradientsOfRow(trainer, whole, gradient);
  expect(distance(got, await gradientsOfRows(trainer, alone))).toBeLessThan(1e-4);
}, 300_000);
