/** Steps that a client sends, in process, over HTTP, interleaved and after a restart -> the weights that the trainer's own calls give. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EMBEDDED_MODEL } from '../../../src/models/named-models.ts';
import type { TrainingRunReply } from '../../../src/protocol/index.ts';
import type { TrainingRun } from '../../../src/protocol/service/training-run.ts';
import { openTrainer } from '../../../src/rl/trainer.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { connect } from '../../../src/serve/http/client/connect.ts';
import { createHandler } from '../../../src/serve/http/server/handler.ts';
import { adam, adapterOf, attempt, inputs, lesson, target, target_tokens } from './run-data.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-runs-'));
const home = path.join(folder, 'home');
const open = () => createRuntime({ home, gpu: false, threads: 1 });
const weightsFile = path.resolve(import.meta.dirname, '../../../models/onpolicy-tiny.gguf');
let runtime: Runtime;
beforeAll(async () => {
  runtime = await open();
});
afterAll(async () => {
  await runtime.close();
  fs.rmSync(folder, { recursive: true });
});

/** The gradient of PPO on two attempts. */
async function prefer(run: TrainingRun): Promise<void> {
  const { loss_fn_outputs } = await run.forward([lesson()]);
  const logprobs = loss_fn_outputs![0]!.logprobs.data;
  const other = logprobs.map((value) => value - 0.1);
  await run.forwardBackward([attempt(1, logprobs), attempt(-1, other)], { loss_fn: 'ppo' });
}

/** Two optimizer steps, one of cross-entropy and one of PPO. */
async function learn(run: TrainingRun): Promise<Buffer> {
  const [first] = await Promise.all([
    run.forwardBackward([lesson(), lesson([0, 0, 0, 1, 1, 0.5])]),
    run.optimStep(adam),
  ]);
  await prefer(run);
  await run.optimStep(adam);
  await run.saveState('end');
  expect(first.metrics!['loss:sum']).toBeGreaterThan(0);
  return adapterOf(run, 'end', home);
}

/** The same by the trainer's own calls. */
async function learnDirectly(): Promise<Buffer> {
  await using trainer = await openTrainer({ ...target, model: weightsFile, gpu: false, threads: 1 });
  const row = (data: readonly number[][]) => {
    const all = data.flatMap((places, datum) =>
      inputs.map((token, i) => ({ token, i, datum, isTarget: places.includes(i) })),
    );
    const groupIds = Int32Array.from(all, ({ datum }) => datum);
    const targets = all.flatMap(({ i, isTarget }, place) =>
      isTarget ? [{ place, token: target_tokens[i]! }] : [],
    );
    return {
      tokens: Int32Array.from(all, ({ token }) => token),
      positions: Int32Array.from(all, ({ i }) => i),
      groupIds,
      parentIds: groupIds,
      logitRows: Int32Array.from(targets, ({ place }) => place),
      targetTokens: Int32Array.from(targets, ({ token }) => token),
    };
  };
  const step = { learningRate: 1e-3, beta1: 0.9, beta2: 0.95, eps: 1e-12, weightDecay: 0, maxGradNorm: 0 };
  const every = inputs.map((_, i) => i);
  await trainer.forward(row([every, [3, 4, 5]]));
  await trainer.backward(Float32Array.of(-1, -1, -1, -1, -1, -1, -1, -1, -0.5));
  await trainer.step(step);
  const { logprobs } = await trainer.forward(row([every]), { gradients: false });
  const old = [...logprobs];
  const counted = every.slice(2);
  const { logprobs: fresh } = await trainer.forward(row([counted, counted]));
  // min(r A, clip(r) A) of both attempts: the first at r = 1, the second at e^0.1, which is within the bounds
  const gradient = [...fresh].map((value, i) =>
    i < 4 ? -Math.exp(value - old[i + 2]!) : Math.exp(value - Math.fround(0) - (old[i - 2]! - 0.1)),
  );
  await trainer.backward(Float32Array.from(gradient));
  await trainer.step(step);
  const to = path.join(folder, 'direct');
  await trainer.save(to);
  return fs.readFileSync(path.join(to, 'adapter_model.safetensors'));
}

describe('a training run', () => {
  let expected: Buffer;
  beforeAll(async () => {
    expected = await learnDirectly();
  });

  it('computes what the calls of a trainer compute, to the bit', async () => {
    await using run = await runtime.openTraining(target);
    expect((await learn(run)).equals(expected)).toBe(true);
  });

  it('computes the same over HTTP', async () => {
    const handler = createHandler(runtime, { allowAnonymous: true });
    await using service = connect({
      baseUrl: 'http://here',
      fetch: (input, init) => handler(new Request(input, init)),
    });
    await using run = await service.openTraining(target);
    expect((await learn(run)).equals(expected)).toBe(true);
    expect((await service.trainingRuns!.list()).map(({ id }) => id)).toContain(run.id);
  });

  it('computes the same beside another run and a job on the same model file', async () => {
    await using run = await runtime.openTraining(target);
    await using other = await runtime.openTraining({ ...target, seed: 8 });
    const disturb = async () => {
      await other.forwardBackward([lesson()]);
      await other.optimStep(adam);
    };
    await disturb();
    await run.forwardBackward([lesson(), lesson([0, 0, 0, 1, 1, 0.5])]);
    await disturb();
    await run.optimStep(adam);
    const model = await runtime.models.create({ base_model: EMBEDDED_MODEL });
    const messages = [
      { role: 'user' as const, content: 'Hi' },
      { role: 'assistant' as const, content: 'Ho' },
    ];
    const job = await runtime.sft({ model_id: model.id, data: [{ messages }] });
    await prefer(run);
    await job.done;
    await run.optimStep(adam);
    await run.saveState('end');
    expect(adapterOf(run, 'end', home).equals(expected)).toBe(true);
  });

  it('goes back to a saved state, and on from it', async () => {
    await using run = await runtime.openTraining(target);
    await run.saveState('start');
    await learn(run);
    await run.loadState('start');
    await run.saveState('again');
    expect(adapterOf(run, 'again', home).equals(adapterOf(run, 'start', home))).toBe(true);
    expect((await learn(run)).equals(expected)).toBe(true);
    expect((await runtime.trainingRuns.retrieve(run.id)).states).toEqual(['start', 'again', 'end']);
  });

  it('loads a state of another run, and replaces one only if it may', async () => {
    await using run = await runtime.openTraining(target);
    await using other = await runtime.openTraining({ ...target, seed: 8 });
    await using smaller = await runtime.openTraining({ ...target, rank: 2 });
    await run.forwardBackward([lesson()]);
    await run.optimStep(adam);
    await run.saveState('a');
    const { loss_fn_outputs } = await run.forward([lesson()]);
    expect((await other.forward([lesson()])).loss_fn_outputs).not.toEqual(loss_fn_outputs);
    await other.loadState('a', { run: run.id });
    expect((await other.forward([lesson()])).loss_fn_outputs).toEqual(loss_fn_outputs);
    await other.saveState('same', { overwrite: false });
    expect(adapterOf(other, 'same', home).equals(adapterOf(run, 'a', home))).toBe(true);
    await expect(other.loadState('b', { run: run.id })).rejects.toThrow('name: expected one of a, got "b"');
    await expect(other.loadState('a', { run: 'nobody' })).rejects.toThrow(
      'there is no training run "nobody"',
    );
    await expect(smaller.loadState('a', { run: run.id })).rejects.toThrow(/rank/);
    await expect(run.saveState('a', { overwrite: false })).rejects.toMatchObject({ code: 'CONFLICT' });
    await run.saveState('a');
  });

  it('scores the targets that the loss counts, or all of them', async () => {
    await using run = await runtime.openTraining(target);
    const data = [lesson([0, 0, 0, 1, 1, 1])];
    const scores = async (result: ReturnType<TrainingRun['forward']>) =>
      (await result).loss_fn_outputs![0]!.logprobs.data;
    const all = await scores(run.forward(data));
    const counted = all.map((value, i) => (i < 3 ? 0 : value));
    expect(await scores(run.forward(data, { weighted_only: true }))).toEqual(counted);
    expect(await scores(run.forwardBackward(data))).toEqual(counted);
    expect(await scores(run.forwardBackward(data, { weighted_only: false }))).toEqual(all);
    expect(all.every((value) => value < 0)).toBe(true);
  });

  it('takes the gradient of a loss of the caller', async () => {
    await using plain = await runtime.openTraining(target);
    await using custom = await runtime.openTraining(target);
    await plain.forwardBackward([lesson()]);
    await custom.forwardBackwardCustom([lesson()], (logprobs) => logprobs.map((of) => of.map(() => -1)));
    for (const run of [plain, custom]) {
      await run.optimStep(adam);
      await run.saveState('end');
    }
    expect(adapterOf(custom, 'end', home).equals(adapterOf(plain, 'end', home))).toBe(true);
  });

  it('takes several targets of a position', async () => {
    await using one = await runtime.openTraining(target);
    await using two = await runtime.openTraining(target);
    const weights = [0.25, 0.5, 0, 1, 1, 0.75];
    await one.forwardBackward([lesson(weights)]);
    await one.forwardBackward([
      {
        ...lesson(),
        loss_fn_inputs: { target_tokens: inputs, weights: weights.map((weight) => 1 - weight) },
      },
    ]);
    const pairs = inputs.flatMap((token, i) => [target_tokens[i]!, token]);
    const shares = weights.flatMap((weight) => [weight, 1 - weight]);
    const both = { ...lesson(), loss_fn_inputs: { target_tokens: pairs, weights: shares } };
    const { loss_fn_outputs } = await two.forwardBackward([both]);
    expect(loss_fn_outputs![0]!.logprobs.shape).toEqual([6, 2]);
    const [first, second] = await Promise.all([one, two].map((run) => run.optimStep(adam)));
    expect(second!.metrics!['loss/grad_norm']).toBeCloseTo(first!.metrics!['loss/grad_norm']!, 0);
  });

  it('takes the losses and settings of jobs', async () => {
    await using run = await runtime.openTraining(target);
    const logprobs = inputs.map(() => -3);
    const data = [attempt(1, logprobs), attempt(-1, logprobs)];
    const policy = {
      loss_fn: 'policy' as const,
      loss_fn_config: { experimental_config: { objective: 'sapo' } },
    };
    for (const loss of [
      { loss_fn: 'importance_sampling' as const },
      { loss_fn: 'cispo' as const, loss_fn_config: { clip_high_threshold: 3 } },
      { loss_fn: 'dro' as const, loss_fn_config: { beta: 0.1 } },
      policy,
    ]) {
      const { metrics } = await run.forwardBackward(data, loss);
      expect(metrics!['loss:sum']).toSatisfy(Number.isFinite);
      expect((await run.optimStep(adam)).metrics!['loss/grad_norm']).toBeGreaterThan(0);
    }
  });

  it('publishes weights, which answer at once', async () => {
    await using run = await runtime.openTraining(target);
    const prompt = { chunks: [{ tokens: inputs }] };
    const before = await run.sample({ prompt, sampling_params: { max_tokens: 1 }, prompt_logprobs: true });
    for (let i = 0; i < 5; i++) {
      await run.forwardBackward([lesson()]);
      await run.optimStep({ learning_rate: 1e-2 });
    }
    expect(await run.saveWeightsForSampler()).toBe(`${run.modelId}@1`);
    const { sequences, prompt_logprobs } = await run.sample({
      prompt,
      num_samples: 2,
      sampling_params: { max_tokens: 3, seed: 1 },
      prompt_logprobs: true,
    });
    expect(sequences).toHaveLength(2);
    expect(sequences![0]!.logprobs).toHaveLength(sequences![0]!.tokens.length);
    const sum = (all: readonly (number | null)[]) =>
      all.reduce<number>((total, one) => total + (one ?? 0), 0);
    expect(sum(prompt_logprobs!)).toBeGreaterThan(sum(before.prompt_logprobs!) + 1);
  });

  it('runs steps in the order of their numbers, and each once', async () => {
    const runs = runtime.trainingRuns;
    const { id } = await runs.create(target);
    const second = runs.call(id, 'optim_step', { sequence: 2 });
    const first = runs.call(id, 'forward_backward', { sequence: 1, data: [lesson()], idempotency_key: 'a' });
    const again = runs.call(id, 'forward_backward', { sequence: 1, data: [lesson()], idempotency_key: 'a' });
    expect(await again).toEqual(await first);
    expect(await second).toMatchObject({ sequence: 2, status: 'completed' });
    await expect(runs.call(id, 'optim_step', { sequence: 2 })).rejects.toMatchObject({
      code: 'CONFLICT',
      message: 'sequence: expected 3, the next step of the training run, got 2',
    });
    const many = Array.from({ length: 100 }, () => lesson());
    const pending: TrainingRunReply = await runs.call(id, 'forward', { data: many, wait_ms: 0 });
    expect(pending.status).toBe('pending');
    expect(await runs.result(pending.request_id)).toMatchObject({ status: 'completed', sequence: 3 });
    await expect(runs.result(`${id}.b`)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await runs.delete(id);
    await expect(runs.call(id, 'forward', { data: [lesson()] })).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('is saved for both who close it at once', async () => {
    const { id, ...run } = await runtime.trainingRuns.create(target);
    await runtime.trainingRuns.call(id, 'optim_step', {});
    expect(run.states).toEqual([]);
    const closed = await Promise.all([1, 2].map(() => runtime.trainingRuns.close(id)));
    expect(closed.map(({ states }) => states)).toEqual([['last'], ['last']]);
    await runtime.trainingRuns.delete(id);
  });

  it('goes on from its last saved state after a restart', async () => {
    const run = await runtime.openTraining(target);
    await run.forwardBackward([lesson(), lesson([0, 0, 0, 1, 1, 0.5])]);
    await run.optimStep(adam);
    await runtime.close(); // saves what no state has
    runtime = await open();
    await using next = await runtime.openTraining({ run: run.id });
    expect(next.sequence).toBe(2);
    const { loss_fn_outputs } = await next.forward([lesson()]);
    const logprobs = loss_fn_outputs![0]!.logprobs.data;
    await next.forwardBackward(
      [
        attempt(1, logprobs),
        attempt(
          -1,
          logprobs.map((value) => value - 0.1),
        ),
      ],
      {
        loss_fn: 'ppo',
      },
    );
    await next.optimStep(adam);
    await next.saveState('end');
    expect(adapterOf(next, 'end', home).equals(expected)).toBe(true);
  });

  it('is refused when its base file changed, and deleted with its model', async () => {
    const copy = path.join(folder, 'copy.gguf');
    fs.copyFileSync(weightsFile, copy);
    const run = await runtime.openTraining({ ...target, model: copy });
    await run.close();
    fs.utimesSync(copy, 1, 1);
    await expect(run.forward([lesson()])).rejects.toThrow('is not the one that the training run began with');
    await runtime.models.delete(run.modelId);
    await expect(runtime.trainingRuns.retrieve(run.id)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });
});
