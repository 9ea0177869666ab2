/** Jobs that learn observations -> the gradient of the definition in whatever rows, and a model that predicts its environment. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../src/index.ts';
import type { ExperimentalConfig, Trajectory } from '../../src/protocol/index.ts';
import { type AdapterWeights, openTrainer, type Trainer } from '../../src/rl/public.ts';
import { draws, packSequence, writeTinyModel } from './tiny-model.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-observations-'));
const file = path.join(folder, 'tiny.gguf');
const home = path.join(folder, 'home');
const SHAPE = { rank: 2, alpha: 4 };
let runtime: Runtime;
let trainer: Trainer;
// A message is the token of its role, its letters and an end.
const TOKENS = { user: 100, assistant: 101, tool: 102, end: 319 };
const TEMPLATE =
  "{% for m in messages %}<{{ {'user': 100, 'assistant': 101, 'tool': 102}[m.role] }}>{{ m.content }}<319>{% endfor %}" +
  '{% if add_generation_prompt %}<101>{% endif %}';

beforeAll(async () => {
  await writeTinyModel(file, {
    architecture: 'qwen3',
    type: 'f32',
    metadata: [['tokenizer.chat_template', TEMPLATE]],
  });
  runtime = await createRuntime({ home, gpu: false, threads: 2, training: SHAPE });
  trainer = await openTrainer({ model: file, gpu: false, threads: 2, ...SHAPE });
});
afterAll(async () => {
  await trainer?.close();
  await runtime?.close();
  fs.rmSync(folder, { recursive: true });
});

const { normal, below, shuffled } = draws(5);
const lettersOf = (text: string) => Array.from(text, (letter) => letter.charCodeAt(0) - 33);
const drawnText = () =>
  Array.from({ length: 1 + below(6) }, () => String.fromCharCode(97 + below(26))).join('');

type Step = ['user' | 'tool', string] | ['choice', string];

/** A trajectory, and its tokens by hand: what was sampled and what was observed. */
function play(reward: number, steps: readonly Step[], role: { tool: number; user: number }) {
  const messages_and_choices: unknown[] = [];
  const tokens: number[] = [];
  const old: number[] = []; // log-probabilities of sampled tokens; NaN of others
  const weights: number[] = []; // of observation tokens; 0 of others
  let hasActed = false;
  for (const [kind, text] of steps) {
    const letters = [...lettersOf(text), TOKENS.end];
    if (kind === 'choice') {
      const logprobs = letters.map(() => -5.5 + 0.2 * normal());
      const content = logprobs.map((logprob) => ({ token: 'x', logprob }));
      const message = { role: 'assistant', content: text };
      messages_and_choices.push({
        index: 0,
        finish_reason: 'stop',
        message,
        token_ids: letters,
        logprobs: { content },
      });
      tokens.push(TOKENS.assistant, ...letters);
      old.push(Number.NaN, ...logprobs);
      weights.push(0, ...letters.map(() => 0));
      hasActed = true;
    } else {
      messages_and_choices.push({
        role: kind,
        content: text,
        ...(kind === 'tool' ? { tool_call_id: 'a' } : {}),
      });
      tokens.push(TOKENS[kind], ...letters);
      old.push(Number.NaN, ...letters.map(() => Number.NaN));
      weights.push(0, ...letters.slice(1).map(() => (hasActed ? role[kind] : 0)), 0);
    }
  }
  const trajectory = { messages_and_choices, reward } as Trajectory;
  return { trajectory, reward, tokens: Int32Array.from(tokens), old, weights };
}

/** Trains one step and returns its metrics and the checkpoint's folder. */
async function stepOf(
  groups: readonly (readonly Trajectory[])[],
  experimental_config: ExperimentalConfig,
  base = file,
) {
  const { id } = await runtime.models.create({ base_model: base });
  const trajectory_groups = groups.map((trajectories) => ({ trajectories: [...trajectories] }));
  const job = await runtime.train({ model_id: id, trajectory_groups, experimental_config });
  const { metrics, step } = await job.done;
  const written = fs.readdirSync(home, { recursive: true, encoding: 'utf8' });
  const optimizer = written.find((name) => name.includes(id) && name.endsWith('optimizer.safetensors'));
  return { id, metrics, step, checkpoint: optimizer ? path.join(home, path.dirname(optimizer)) : null };
}

const flat = (weights: AdapterWeights): number[] =>
  Object.values(weights).flatMap(({ a, b }) => [...a, ...b]);

describe('observations of a job', () => {
  const role = { tool: 0.5, user: 0.25 };
  const config = {
    objective: 'importance_sampling',
    advantage_estimator: 'none',
    normalize_advantages: false,
    normalize_by_length: false,
    gradient_accumulation_steps: 1000,
    observation_weights: role,
  } as const satisfies ExperimentalConfig;
  const draw = (task: string, reward: number) => {
    const steps: Step[] = [
      ['user', task],
      ['choice', drawnText()],
    ];
    for (let turn = 0; turn < 1 + below(3); turn++) {
      steps.push(['tool', drawnText()]);
      if (below(2)) steps.push(['user', drawnText()]);
      steps.push(['choice', drawnText()]);
    }
    return play(reward, steps, role);
  };
  // A reward of 0 is no advantage: of such an attempt only the observations are learned.
  const plays = ['go', 'run'].map((task) => [1, -2, 0, 0.5].map((reward) => draw(task, reward)));

  /** The loss by its definition, and with `hasGradient` its gradient in the trainer: each sequence in a row of its own. */
  async function definition(hasGradient: boolean, temperature: number) {
    const all = plays.flat();
    const sampled = all.flatMap(({ old, reward }) =>
      reward === 0 ? [] : old.filter((one) => !Number.isNaN(one)),
    );
    const observed = all.flatMap(({ weights }) => weights.filter((weight) => weight > 0));
    let [policy, loss, crossEntropy] = [0, 0, 0];
    for (const { tokens, reward, old, weights } of all) {
      const temperatures = Float32Array.from(old.slice(1), (one) => (Number.isNaN(one) ? 1 : temperature));
      const row = { ...packSequence(tokens), temperatures };
      const { logprobs } = await trainer.forward(row, { gradients: hasGradient });
      const slopes = new Float64Array(logprobs.length);
      for (const [i, logprob] of logprobs.entries()) {
        const ratio = Math.exp(logprob - old[i + 1]!);
        const weight = weights[i + 1]!;
        if (reward !== 0 && !Number.isNaN(ratio)) {
          policy -= (ratio * reward) / sampled.length;
          slopes[i] = -(ratio * reward) / sampled.length;
        } else if (weight > 0) {
          loss -= (weight * logprob) / observed.length;
          crossEntropy -= logprob / observed.length;
          slopes[i] = -weight / observed.length;
        }
      }
      if (hasGradient) await trainer.backward(Float32Array.from(slopes));
    }
    return { policy, loss: policy + loss, crossEntropy, observed: observed.length, sampled: sampled.length };
  }

  it.each([1, 0.7])(
    'has the loss and the gradient of the definition, however trajectories are packed: answers at temperature %d',
    async (temperature) => {
      const expected = await definition(true, temperature);
      const gradients = trainer.gradients();
      await trainer.zeroGradients();
      const gradient = flat(gradients);
      const norm = Math.hypot(...gradient);

      // The definition's own slope along a direction, without any gradient.
      const start = trainer.adapter();
      const h = 0.02 / norm;
      const lossAt = async (along: number) => {
        const moved = Object.entries(start).map(([name, { a, b }]) => {
          const by = gradients[name]!;
          return [
            name,
            {
              a: a.map((value, i) => value + along * by.a[i]!),
              b: b.map((value, i) => value + along * by.b[i]!),
            },
          ];
        });
        await trainer.loadAdapter(Object.fromEntries(moved));
        return (await definition(false, temperature)).loss;
      };
      const slope = ((await lossAt(h)) - (await lossAt(-h))) / (2 * h);
      await trainer.loadAdapter(start);
      expect(slope / norm ** 2).toBeCloseTo(1, 2);

      const rows = new Set<number>();
      for (const length of [null, 56, 72, 97]) {
        const groups = shuffled(plays).map((group) => shuffled(group).map(({ trajectory }) => trajectory));
        const { metrics, checkpoint } = await stepOf(groups, {
          ...config,
          sampling_temperature: temperature,
          sampler_logprobs: 'processed',
          packed_sequence_length: length,
        });
        expect(metrics['data/step_num_truncated']).toBe(0);
        expect(metrics['loss/observation']).toBeCloseTo(expected.crossEntropy, 7);
        expect(metrics['loss/train']).toBeCloseTo(expected.policy, 7);
        expect(metrics['data/step_observation_tokens']).toBe(expected.observed);
        expect(metrics['data/step_trainable_tokens']).toBe(expected.sampled);
        expect(metrics['loss/grad_norm']! / norm).toBeCloseTo(1, 4);
        rows.add(metrics['data/step_packed_tokens']!);
        await using reader = await openTrainer({ model: file, gpu: false, threads: 1, ...SHAPE });
        await reader.load(checkpoint!);
        // AdamW's first moment after one step: a tenth of the gradient, whose norm is clipped at 0.1.
        const moment = flat((await reader.state()).firstMoment);
        const scale = 0.1 * Math.min(1, 0.1 / norm);
        const worst = Math.max(...moment.map((value, i) => Math.abs(value - scale * gradient[i]!)));
        expect(worst / (scale * Math.max(...gradient.map(Math.abs)))).toBeLessThan(1e-4);
      }
      expect(rows.size).toBeGreaterThan(1); // packings differ
    },
  );

  it('has the same bits with weights of 0 as without', async () => {
    const groups = plays.map((group) => group.map(({ trajectory }) => trajectory));
    const bits = async (observation_weights: ExperimentalConfig['observation_weights']) => {
      const { checkpoint, metrics } = await stepOf(groups, { learning_rate: 0.01, observation_weights });
      const timed = Object.entries(metrics).filter(([name]) => !/^(time|throughput)/.test(name));
      return {
        metrics: timed,
        adapter: fs.readFileSync(path.join(checkpoint!, 'adapter.gguf')).toString('hex'),
      };
    };
    const off = await bits(null);
    expect(await bits({ tool: 0, user: 0 })).toEqual(off);
    expect(await bits({ developer: 1 })).toMatchObject({ adapter: off.adapter });
    expect((await bits(role)).adapter).not.toBe(off.adapter);
  });

  it('are learned where all rewards are equal, too', async () => {
    const groups = plays.map((group) => group.map(({ trajectory }) => ({ ...trajectory, reward: 1 })));
    expect((await stepOf(groups, {})).step).toBe(0);
    const { step, metrics } = await stepOf(groups, { observation_weights: { tool: 1 } });
    expect(step).toBe(1);
    expect(metrics).toMatchObject({ 'data/step_trainable_tokens': 0, 'data/step_num_groups_trainable': 0 });
    expect(metrics['loss/train']).toBeUndefined();
    expect(metrics['loss/observation']).toBeGreaterThan(0);
  });
});

describe('a model in an environment', () => {
  const ROOMS = ['hall', 'cellar', 'garden', 'tower', 'kitchen', 'attic'];
  const see = (place: number) =>
    `You are in the ${ROOMS[place % 6]} now. There are ${2 + (place % 3)} doors here.`;
  const first = { role: 'user' as const, content: 'Explore.' };
  const SAMPLED = { logprobs: true, return_token_ids: true, max_tokens: 12, stream: false } as const;

  /** A conversation with the environment, its answers sampled. Rewards say nothing about observations. */
  async function attempt(model: string, seed: number): Promise<Trajectory> {
    const messages: { role: 'user' | 'assistant'; content: string }[] = [first];
    const messages_and_choices: unknown[] = [first];
    for (let turn = 0; turn < 2; turn++) {
      const request = { ...SAMPLED, model, messages: [...messages], seed: 2 * seed + turn };
      const { choices, prompt_token_ids } = await runtime.createCompletion(request);
      const seen = { role: 'user' as const, content: see(seed + turn) };
      messages.push({ role: 'assistant', content: choices[0]!.message.content ?? '' }, seen);
      messages_and_choices.push({ ...choices[0]!, prompt_token_ids }, seen);
    }
    return { messages_and_choices, reward: seed % 2 } as Trajectory;
  }

  /** Mean cross-entropy of observations that follow other answers, as completions report it: without the trainer. */
  async function heldOut(model: string): Promise<number> {
    const losses: number[] = [];
    for (const place of [100, 101, 102, 103]) {
      const answer = { role: 'assistant' as const, content: `I go on, ${place}.` };
      const messages = [first, answer, { role: 'user' as const, content: see(place) }];
      const request = {
        model,
        messages,
        max_tokens: 1,
        stream: false,
        prompt_logprobs: 0,
        return_token_ids: true,
      };
      const { prompt_logprobs, prompt_token_ids } = await runtime.createCompletion(
        request as typeof request & { stream: false },
      );
      const entries = prompt_logprobs!.map((entry, i) => entry?.[prompt_token_ids![i]!]);
      const text = entries.map((entry) => entry?.decoded_token ?? '').join('');
      const start = text.lastIndexOf(see(place));
      expect(start).toBeGreaterThan(0);
      let at = 0;
      for (const entry of entries) {
        if (at >= start && at < start + see(place).length) losses.push(-entry!.logprob);
        at += entry?.decoded_token?.length ?? 0;
      }
    }
    return losses.reduce((sum, one) => sum + one, 0) / losses.length;
  }

  async function learn(observation_weights: ExperimentalConfig['observation_weights']): Promise<number[]> {
    const { id } = await runtime.models.create({ base_model: 'onpolicy-tiny' });
    const curve = [await heldOut(id)];
    for (let step = 0; step < 10; step++) {
      const trajectories = await Promise.all(Array.from({ length: 8 }, (_, i) => attempt(id, 8 * step + i)));
      const experimental_config = { learning_rate: 1e-2, observation_weights };
      await (
        await runtime.train({ model_id: id, trajectory_groups: [{ trajectories }], experimental_config })
      ).done;
      curve.push(await heldOut(id));
    }
    return curve;
  }

  it('learns to predict what follows answers that it was not trained on', { timeout: 600_000 }, async () => {
    const off = await learn(null);
    const on = await learn({ user: 0.5 });
    expect(on[0]).toBe(off[0]);
    expect(on.at(-1)!).toBeLessThan(on[0]! / 2);
    expect(off.at(-1)!).toBeGreaterThan(off[0]! * 0.7);
  });
});
