/** One optimizer step in random packings -> the gradient and the metrics that one row with all sequences has. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AdapterWeights } from '../../src/engine/native/index.ts';
import { algorithms } from '../../src/rl/algorithms.ts';
import { makeBatch } from '../../src/rl/batch.ts';
import { policyLoss, preferenceLoss } from '../../src/rl/caller-losses.ts';
import { type PolicyLoss, rowLoss } from '../../src/rl/loss.ts';
import type { LossPool } from '../../src/rl/loss-pool.ts';
import { trainOnGroups } from '../../src/rl/policy-steps.ts';
import { rowPreferenceLoss } from '../../src/rl/preference-loss.ts';
import { type ExperimentalConfig, needsReference, resolveSettings } from '../../src/rl/settings.ts';
import type { ChatTokenizer } from '../../src/rl/tokens.ts';
import { openTrainer, type Trainer } from '../../src/rl/trainer.ts';
import type { TrajectoryGroup } from '../../src/rl/trajectory.ts';
import { randomAdapter } from './random-adapter.ts';
import { draws, normals, writeTinyModel } from './tiny-model.ts';

const PACKINGS = 20;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-packing-'));
let trainer: Trainer;
beforeAll(async () => {
  const model = path.join(folder, 'tiny.gguf');
  await writeTinyModel(model, { architecture: 'qwen3', type: 'f32' });
  trainer = await openTrainer({ model, gpu: false, threads: 1, rank: 2, arithmetic: 'exact' });
  await trainer.loadAdapter(randomAdapter(trainer, normals(3), 0.3));
});
afterAll(async () => {
  await trainer?.close();
  fs.rmSync(folder, { recursive: true });
});

const lossPool: LossPool = {
  compute: async (inputs, settings, totals) =>
    settings.preference_loss === null
      ? rowLoss(inputs, settings, totals)
      : rowPreferenceLoss(inputs as never, settings, totals),
  async close() {},
  async [Symbol.asyncDispose]() {},
};
const tokenizer = { isEnd: () => false } as unknown as ChatTokenizer; // all choices have their ids

const { normal, below, shuffled } = draws(11);

/** Groups whose answers have 1 to 12 tokens and log-probabilities near those of the model. */
function drawGroups(count: number, size: number): TrajectoryGroup[] {
  return Array.from({ length: count }, () => {
    const prompt_token_ids = Array.from({ length: 3 + below(8) }, () => below(250));
    const trajectories = Array.from({ length: size }, (_, i) => {
      const token_ids = Array.from({ length: 1 + below(12) }, () => below(250));
      const content = token_ids.map(() => ({ token: 'x', logprob: -5.5 + 0.2 * normal() }));
      return {
        reward: i + below(3) / 4 - 0.5,
        metrics: { right: below(5), brief: i },
        messages_and_choices: [
          { role: 'user', content: 'x' },
          {
            index: 0,
            finish_reason: 'stop' as const,
            message: { role: 'assistant' as const, content: '' },
            prompt_token_ids,
            token_ids,
            logprobs: { content },
          },
        ],
      };
    });
    return { trajectories };
  });
}

/** The gradient and the metrics of the step, all rows accumulated. */
async function step(
  groups: readonly TrajectoryGroup[],
  config: ExperimentalConfig,
  rowLength: number | null,
) {
  const settings = resolveSettings({
    ...config,
    gradient_accumulation_steps: 1000,
    packed_sequence_length: rowLength,
  });
  let gradients: AdapterWeights = {};
  let rows = 0;
  const spy: Trainer = {
    ...trainer,
    backward: async (given) => {
      rows++;
      await trainer.backward(given);
    },
    step: async () => {
      gradients = trainer.gradients();
      await trainer.zeroGradients();
      return { gradNorm: 1, isApplied: true };
    },
  };
  const tools = { trainer: spy, tokenizer, lossPool, emit: () => {}, now: () => 0 };
  const { metrics } = await trainOnGroups(groups, settings, tools);
  return { gradients, metrics, rows };
}

/** The same by the public function of the loss, on one row with everything. */
async function plain(groups: readonly TrajectoryGroup[], config: ExperimentalConfig) {
  const settings = resolveSettings({ ...config, packed_sequence_length: 4096 });
  const { rows } = await makeBatch(groups, settings, tokenizer, 4096, async () => {});
  expect(rows).toHaveLength(1);
  const [{ row, oldLogprobs, ...columns }] = rows as [(typeof rows)[0]];
  const score = async (options: object) =>
    Float64Array.from((await trainer.forward(row, { gradients: false, ...options })).logprobs);
  const ref_logprobs = needsReference(settings) ? await score({ adapterOff: true }) : null;
  const recomputed = settings.precalculate_logprobs ? await score({}) : null;
  const { logprobs, entropies } = await trainer.forward(row);
  const inputs = {
    new_logprobs: logprobs,
    old_logprobs: recomputed ?? oldLogprobs,
    original_logprobs: recomputed ? oldLogprobs : null,
    ref_logprobs,
    advantages: columns.advantages,
    weights: columns.weights,
    mask: new Uint8Array(logprobs.length).fill(1),
    sequence_ids: columns.sequenceIds,
    entropies,
  };
  const loss: PolicyLoss =
    settings.preference_loss === null ? policyLoss(inputs, config) : preferenceLoss(inputs as never, config);
  await trainer.backward(Float32Array.from(loss.grad_new_logprobs));
  const gradients = trainer.gradients();
  await trainer.zeroGradients();
  return { gradients, loss };
}

const CASES: Readonly<Record<string, ExperimentalConfig>> = {
  defaults: {},
  ...algorithms,
  dr_grpo: { ...algorithms.dr_grpo, loss_length: 20 },
  gdpo: { ...algorithms.gdpo, reward_weights: { right: 1, brief: 0.5 } },
  kl_penalty_source: { kl_penalty_coef: 0.3, kl_penalty_source: 'sample' },
  'kl_penalty_coef, kl_loss_coef': { kl_penalty_coef: 0.3, kl_loss_coef: 0.2 },
  top_entropy_quantile: { ...algorithms.dapo, top_entropy_quantile: 0.4 },
  dpo: { preference_loss: 'dpo' },
  kto: { preference_loss: 'kto', preference_beta: 2 },
};

describe('an optimizer step, however its rows are packed', () => {
  it.each(Object.entries(CASES))('has one gradient and one set of metrics: %s', async (_, config) => {
    const groups = drawGroups(4, config.preference_loss === 'dpo' ? 2 : 3);
    const expected = await plain(groups, config);
    const largest = Math.max(
      ...Object.values(expected.gradients).flatMap(({ a, b }) => [...a, ...b].map(Math.abs)),
    );
    expect(largest).toBeGreaterThan(0);
    const counts = new Set<number>();
    for (let packing = 0; packing < PACKINGS; packing++) {
      const order = shuffled(groups).map(({ trajectories }) => ({ trajectories: shuffled(trajectories) }));
      const { gradients, metrics, rows } = await step(order, config, packing === 0 ? 4096 : 36 + below(50));
      counts.add(rows);
      let worst = 0;
      for (const [name, { a, b }] of Object.entries(expected.gradients)) {
        const found = gradients[name]!;
        for (const [i, value] of a.entries()) worst = Math.max(worst, Math.abs(value - found.a[i]!));
        for (const [i, value] of b.entries()) worst = Math.max(worst, Math.abs(value - found.b[i]!));
      }
      expect(worst / largest).toBeLessThan(1e-5);
      const { loss } = expected;
      for (const [name, value] of Object.entries({
        'loss/train': loss.loss,
        'loss/entropy': loss.entropy,
        'loss/kl_div': loss.kl_div,
        'loss/kl_policy_ref': loss.kl_policy_ref,
        'train/clip_fraction': loss.clip_fraction,
        'train/probs_corr': loss.probs_corr,
        'train/preference_accuracy': loss.preference_accuracy,
      })) {
        if (value === null) expect(metrics[name]).toBeUndefined();
        else expect(Math.abs(metrics[name]! - value)).toBeLessThan(1e-6 * Math.max(1, Math.abs(value)));
      }
    }
    expect(counts.size).toBeGreaterThan(1); // packings differ
  });
});
