/** Preferences between texts -> jobs of DPO and KTO on the embedded model: the policy comes to hold them. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ExperimentalConfig } from '../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-preferences-'));
let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ home, threads: 1 });
});
afterAll(async () => {
  await runtime.close();
  fs.rmSync(home, { recursive: true, force: true });
});

const answered = (content: string, reward: number) => ({
  messages_and_choices: [
    { role: 'user' as const, content: 'What is the capital of Peru?' },
    { finish_reason: 'stop', message: { role: 'assistant', content } },
  ],
  reward,
});
const pair = { trajectories: [answered('The capital of Peru is Lima.', 0), answered('It is Cairo.', 1)] };

async function train(config: ExperimentalConfig, groups: readonly (typeof pair)[], jobs: number) {
  const { id } = await runtime.models.create({ base_model: 'onpolicy-tiny' });
  const metrics = [];
  for (let i = 0; i < jobs; i++) {
    const job = await runtime.train({
      model_id: id,
      trajectory_groups: groups,
      experimental_config: { learning_rate: 1e-3, ...config },
    });
    metrics.push((await job.done).metrics);
  }
  return metrics;
}

describe('preferences', () => {
  it.each(['dpo', 'kto'] as const)(
    '%s lowers its loss until the policy holds them',
    async (preference_loss) => {
      const metrics = await train({ preference_loss }, [pair], 4);
      expect(metrics[0]!['loss/train']).toBeCloseTo(preference_loss === 'dpo' ? Math.log(2) : 0.5, 3);
      expect(metrics[0]!['train/preference_accuracy']).toBe(0); // no answer is preferred over the reference yet
      expect(metrics[3]!['loss/train']).toBeLessThan(metrics[0]!['loss/train']! - 0.01);
      if (preference_loss === 'dpo') expect(metrics[3]!['train/preference_accuracy']).toBe(1);
    },
  );

  it.each([
    ['one answer', { trajectories: pair.trajectories.slice(1) }],
    ['three answers', { trajectories: [...pair.trajectories, answered('Peru.', 2)] }],
    ['equal rewards', { trajectories: [pair.trajectories[0]!, pair.trajectories[0]!] }],
  ])('dpo names a group that is no pair: %s', async (_, group) => {
    await expect(train({ preference_loss: 'dpo' }, [pair, group], 1)).rejects.toThrow(
      'trajectory_groups.1: expected two trajectories with different rewards for preference_loss dpo',
    );
  });

  it('dpo names a row that is too short for a pair', async () => {
    const config = { preference_loss: 'dpo', packed_sequence_length: 26 } as const;
    await expect(train(config, [pair], 1)).rejects.toThrow(
      /packed_sequence_length: expected at least \d+ for answers/,
    );
  });
});

describe('settings of rewards', () => {
  it('batch: groups of equal rewards train against each other', async () => {
    const same = (reward: number) => ({
      trajectories: [answered('Lima.', reward), answered('Cairo.', reward)],
    });
    const config = { allow_training_without_logprobs: true };
    const [group] = await train(config, [same(0), same(1)], 1);
    expect(group!['data/step_num_groups_trainable']).toBe(0);
    const [batch] = await train({ ...config, advantage_estimator: 'batch' }, [same(0), same(1)], 1);
    expect(batch!['data/step_num_groups_trainable']).toBe(2);
  });

  it('overlong: long answers lose reward', async () => {
    const long = 'The capital of Peru is Lima. '.repeat(4);
    const group = { trajectories: [answered('Lima.', 1), answered(long, 1)] };
    const config = { allow_training_without_logprobs: true };
    const [plain] = await train(config, [group], 1);
    expect(plain!['data/step_num_groups_trainable']).toBe(0);
    const [shaped] = await train({ ...config, overlong_length: 20 }, [group], 1);
    expect(shaped!['data/step_num_groups_trainable']).toBe(1);
  });
});
