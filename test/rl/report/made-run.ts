/** A run as training and logging leave it, made up: any number of steps, groups and trajectories. */
import fs from 'node:fs';
import path from 'node:path';
import type { LogRequest } from '../../../src/protocol/index.ts';
import { stepFolder } from '../../../src/rl/checkpoint-step.ts';
import type { Store } from '../../../src/rl/store/store.ts';
import { randomNumbers } from '../../fakes/random-numbers.ts';

/** How large the run is. */
export type RunSize = {
  readonly steps: number;
  readonly groups: number;
  readonly perGroup: number;
  readonly tokens: number;
};

const WORDS =
  ' the a model learns to add numbers , then says that 4 + 5 is nine because it counted on its fingers .'.split(
    /(?= )/,
  );

/** Makes the run of a model; the same every time. */
export async function makeRun(store: Store, modelId: string, size: RunSize): Promise<void> {
  const random = randomNumbers(7);
  const { steps, groups } = size;
  const perStep = groups / steps;
  let logged = 0;
  for (let step = 1; step <= steps; step++) {
    const progress = step / steps;
    const metrics = {
      'train/reward': 0.2 + 0.6 * progress + 0.1 * random(),
      'train/reward_std_dev': 0.3 - 0.2 * progress,
      'train/clip_fraction': 0,
      'train/probs_corr': 0.999,
      'loss/train': 0.5 - 0.3 * progress + 0.05 * random(),
      'loss/entropy': 2 - progress,
      'loss/kl_div': 0.01 * progress,
      'loss/kl_policy_ref': 0.02 * progress,
      'loss/grad_norm': 0.1 + 0.05 * random(),
      'loss/learning_rate': 5e-6,
      'throughput/train_tok_per_s': 80 + 10 * random(),
    };
    const folder = stepFolder(store.checkpointsFolder(modelId), step);
    fs.mkdirSync(folder, { recursive: true });
    const facts = { id: store.newCheckpointId(modelId, step), step, metrics, trajectory_hash: '' };
    fs.writeFileSync(path.join(folder, 'checkpoint.json'), JSON.stringify(facts));
    await store.runs.logTraining(modelId, step, metrics);
    const trajectory_groups = [];
    for (; logged < step * perStep; logged++) trajectory_groups.push(group(logged, size, random));
    if (trajectory_groups.length > 0)
      await store.runs.log(modelId, { split: step % 5 === 0 ? 'val' : 'train', trajectory_groups });
  }
}

function group(
  n: number,
  { perGroup, tokens }: RunSize,
  random: () => number,
): LogRequest['trajectory_groups'][number] {
  return {
    trajectories: Array.from({ length: perGroup }, () => ({
      messages_and_choices: [
        { role: 'system', content: 'You add numbers.' },
        { role: 'user', content: `What is ${n} + ${n % 7}? </script><b>not bold</b>` },
        choice(tokens, random),
      ],
      reward: Math.round(random() * 4) / 4,
      metrics: { length: tokens },
    })),
  };
}

/** Two attempts of an agent with a tool, and one that failed. */
export function agentGroup(): LogRequest['trajectory_groups'][number] {
  const said = (
    tokens: readonly string[],
    message: object = { role: 'assistant', content: tokens.join('') },
  ) => ({
    index: 0,
    finish_reason: 'stop',
    message: message as { role: string },
    logprobs: { content: tokens.map((token, i) => ({ token, logprob: -i / 2 })) },
  });
  const call = {
    role: 'assistant',
    content: null,
    tool_calls: [
      { id: 'c', type: 'function', function: { name: 'calculate', arguments: '{"expression": "2 + 3"}' } },
    ],
  };
  const attempt = (reward: number) => ({
    messages_and_choices: [
      { role: 'user', content: 'Add 2 and 3.' },
      said(['<tool_call>', '{"name": ', '"calculate"}'], call),
      { role: 'tool', content: '5', tool_call_id: 'c' },
      said(['It', ' is', ' 5', '.']),
    ],
    additional_histories: [
      { messages_and_choices: [{ role: 'user', content: 'Sum it up.' }, said(['It', ' is', ' 5.'])] },
    ],
    tools: [{ type: 'function' as const, function: { name: 'calculate', parameters: {} } }],
    initial_policy_version: 19,
    reward,
  });
  return {
    trajectories: [attempt(1), attempt(0)] as LogRequest['trajectory_groups'][number]['trajectories'],
    exceptions: [{ type: 'TIMEOUT', message: 'too slow' }],
  };
}

function choice(tokenCount: number, random: () => number) {
  const tokens = Array.from({ length: tokenCount }, () => WORDS[Math.floor(random() * WORDS.length)]!);
  return {
    index: 0,
    finish_reason: 'stop',
    message: { role: 'assistant', content: tokens.join('') },
    token_ids: tokens.map((_, i) => i),
    logprobs: { content: tokens.map((token) => ({ token, logprob: Math.log(1 - random()) / 2 })) },
  };
}
