import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EMBEDDED_MODEL } from '../../../src/models/named-models.ts';
import type {
  ChatCompletionRequest,
  MessageOrChoice,
  Model,
  TrainingJobEvent,
  Trajectory,
} from '../../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-training-'));
let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ home, gpu: false, threads: 1 });
});
afterAll(async () => {
  await runtime.close();
  fs.rmSync(home, { recursive: true });
});

const SAMPLED = { logprobs: true, return_token_ids: true, temperature: 1, max_tokens: 24 };
const register = () => runtime.models.create({ base_model: EMBEDDED_MODEL });

/** Answers to one prompt as a group, scored by their place: the rewards differ. */
async function sampleGroup(model: Model, request: Partial<ChatCompletionRequest>, n = 4) {
  const messages = request.messages ?? [{ role: 'user', content: 'Tell me a story.' }];
  const { choices } = await runtime.createCompletion({
    ...SAMPLED,
    ...request,
    model: model.id,
    messages,
    n,
    stream: false,
  });
  const trajectories = choices.map(
    (choice, i): Trajectory => ({
      messages_and_choices: [...messages, choice] as MessageOrChoice[],
      reward: i % 2,
      tools: request.tools ?? null,
    }),
  );
  return { trajectories };
}

async function collect(events: AsyncIterable<TrainingJobEvent>): Promise<TrainingJobEvent[]> {
  const all: TrainingJobEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

const weatherTool = {
  type: 'function' as const,
  function: {
    name: 'get_weather',
    description: 'The weather in a city',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};

describe('train', () => {
  it('makes a checkpoint out of sampled answers, which the next completion uses', async () => {
    const model = await register();
    const group = await sampleGroup(model, {});
    const job = await runtime.train({
      model_id: model.id,
      trajectory_groups: [group],
      experimental_config: { learning_rate: 1e-3 },
    });
    const events = collect(job.events());
    const result = await job.done;
    expect(result).toMatchObject({ job_id: job.id, model_id: model.id, step: 1 });
    expect(result.metrics['train/probs_corr']).toBeGreaterThan(0.99);
    expect(result.metrics['train/reward']).toBe(0.5);
    expect(job.status).toBe('completed');
    expect(await runtime.runs.splits(model.id)).toEqual({ train: 4 });
    const types = ['training_started', 'gradient_step', 'training_ended'];
    expect((await events).map(({ type }) => type)).toEqual(types);
    expect((await collect(job.events())).length).toBe(3); // from the beginning, also afterwards
    const page = await runtime.trainingJobs.events(job.id);
    expect(page.data.map(({ type }) => type)).toEqual(types);
    expect(await runtime.trainingJobs.retrieve(job.id)).toMatchObject({ status: 'completed', step: 1 });
    const { data } = await runtime.checkpoints.list(model.id);
    expect(data).toMatchObject([{ id: result.checkpoint_id, step: 1 }]);
    expect(await runtime.models.retrieve(model.id)).toMatchObject({ step: 1 });
    const messages = [{ role: 'user' as const, content: 'What is 45 - 5?' }];
    const next = await runtime.createCompletion({ model: model.id, messages });
    expect(next.system_fingerprint).toContain(result.checkpoint_id);
    const base = await runtime.createCompletion({ model: `${model.id}@0`, messages });
    expect(base.system_fingerprint).not.toContain(result.checkpoint_id);
  });

  it.each([
    [
      'with tools',
      {
        messages: [{ role: 'user' as const, content: 'What is the weather in Lima?' }],
        tools: [weatherTool],
      },
    ],
    [
      'of several turns',
      {
        messages: [
          { role: 'user' as const, content: 'My name is Omar.' },
          { role: 'assistant' as const, content: 'Hello Omar!' },
          { role: 'user' as const, content: 'What is my name?' },
        ],
      },
    ],
    [
      'with a system message',
      {
        messages: [
          { role: 'system' as const, content: 'You are brief.' },
          { role: 'user' as const, content: 'Count from 4 to 9.' },
        ],
      },
    ],
  ])('agrees with the sampler about conversations %s', async (_, request) => {
    const model = await register();
    for (const learning_rate of [1e-3, 1e-4]) {
      const group = await sampleGroup(model, request, 6);
      const job = await runtime.train({
        model_id: model.id,
        trajectory_groups: [group],
        experimental_config: { learning_rate },
      });
      expect((await job.done).metrics['train/probs_corr']).toBeGreaterThan(0.99);
    }
  });

  it('trains every turn of a conversation that was sampled turn by turn', async () => {
    const model = await register();
    const trajectories: Trajectory[] = [];
    for (let i = 0; i < 4; i++) {
      const entries: MessageOrChoice[] = [];
      const messages: ChatCompletionRequest['messages'][number][] = [];
      for (const content of ['My name is Lena.', 'What is my name?']) {
        entries.push({ role: 'user', content });
        messages.push({ role: 'user', content });
        const { choices } = await runtime.createCompletion({
          ...SAMPLED,
          model: model.id,
          messages,
          stream: false,
        });
        entries.push(choices[0]! as MessageOrChoice);
        messages.push(choices[0]!.message as never);
      }
      trajectories.push({ messages_and_choices: entries, reward: i % 2 });
    }
    const job = await runtime.train({ model_id: model.id, trajectory_groups: [{ trajectories }] });
    const { metrics } = await job.done;
    expect(metrics['train/probs_corr']).toBeGreaterThan(0.99);
    const sampled = trajectories.flatMap(({ messages_and_choices }) =>
      messages_and_choices.flatMap((entry) => ('message' in entry ? entry.token_ids! : [])),
    );
    expect(metrics['data/step_trainable_tokens']).toBe(sampled.length);
  });

  it('takes trajectories that went through JSON, and goes on where the last job stopped', async () => {
    const model = await register();
    for (const step of [1, 2]) {
      const groups = JSON.parse(JSON.stringify([await sampleGroup(model, {})])) as never;
      const job = await runtime.train({ model_id: model.id, trajectory_groups: groups });
      expect((await job.done).step).toBe(step);
    }
  });

  it('ends well, without a step, when no group teaches anything', async () => {
    const model = await register();
    const group = await sampleGroup(model, {});
    const trajectories = group.trajectories.map((one) => ({ ...one, reward: 1 }));
    const job = await runtime.train({ model_id: model.id, trajectory_groups: [{ trajectories }] });
    const { step, checkpoint_id, metrics } = await job.done;
    expect([step, checkpoint_id, metrics['data/step_num_groups_trainable']]).toEqual([0, null, 0]);
  });

  it('lets completions go on, and the event loop', async () => {
    const model = await register();
    const groups = await Promise.all(Array.from({ length: 6 }, () => sampleGroup(model, { max_tokens: 60 })));
    const job = await runtime.train({
      model_id: model.id,
      trajectory_groups: groups,
      experimental_config: { packed_sequence_length: 256 },
    });
    let answered = 0;
    while (job.status === 'queued' || job.status === 'running') {
      await runtime.createCompletion({ messages: [{ role: 'user', content: 'Hello!' }], max_tokens: 4 });
      answered += 1;
    }
    await job.done;
    expect(answered).toBeGreaterThan(20); // some 300; its few packed batches on this thread would let a few through
  });
});

describe('a job', () => {
  it('keeps the step that it is compared with, and the one that it began with, until it has ended', async () => {
    const model = await register();
    const group = await sampleGroup(model, {});
    const teach = (config: object) =>
      runtime.train({
        model_id: model.id,
        trajectory_groups: [group],
        experimental_config: { learning_rate: 1e-4, ...config },
      });
    for (let step = 1; step <= 2; step++) await (await teach({})).done;
    for (const [used, config] of [
      [1, { kl_penalty_coef: 0.1, kl_penalty_reference_step: 1 }],
      [2, { kl_penalty_coef: 0.1, kl_penalty_step_lag: 1 }],
      [4, {}],
    ] as const) {
      const job = await teach(config);
      for await (const { type } of job.events()) if (type === 'training_started') break;
      const order: string[] = [];
      const deleted = runtime.checkpoints
        .delete(model.id, { steps: [used] })
        .then(() => order.push('deleted'));
      await job.done;
      order.push('trained');
      await deleted;
      expect(order).toEqual(['trained', 'deleted']);
    }
    const { data } = await runtime.checkpoints.list(model.id);
    expect(data.map(({ step }) => step)).toEqual([5, 3]);
    await expect(teach({ kl_penalty_coef: 0.1, kl_penalty_step_lag: 1 })).rejects.toMatchObject({
      param: 'experimental_config.kl_penalty_step_lag', // step 4 is deleted
    });
  });

  it('is refused when it cannot be run', async () => {
    const unknown = '00000000-0000-4000-8000-000000000000';
    await expect(runtime.train({ model_id: unknown, trajectory_groups: [] })).rejects.toMatchObject({
      code: 'MODEL_NOT_FOUND',
    });
    const model = await register();
    const request = { model_id: model.id, trajectory_groups: [] };
    await expect(
      runtime.train({ ...request, experimental_config: { learning_rate: -1 } }),
    ).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    await expect(runtime.train(request, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: 'ABORTED',
    });
    await expect(runtime.trainingJobs.retrieve(unknown)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(runtime.trainingJobs.cancel(unknown)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('is refused at validation when it could not work, with the path of the faulty value', async () => {
    const model = await register();
    const message = { role: 'assistant', content: 'Hi' };
    const sampled = { message, finish_reason: 'stop', token_ids: [5, 6] };
    const of = (count: number, token = 'x') => ({
      content: Array.from({ length: count }, () => ({ token, logprob: -1 })),
    });
    const refusalOf = async (choice: object, experimental_config = {}) => {
      const entries = [{ role: 'user' as const, content: 'Hello!' }, choice as MessageOrChoice];
      const trajectories = [0, 1].map((reward) => ({ messages_and_choices: reward ? entries : [], reward }));
      const request = { model_id: model.id, trajectory_groups: [{ trajectories }], experimental_config };
      return await runtime.train(request).then(
        () => 'taken',
        (error) => `${error.code} ${error.param}`,
      );
    };
    const at = 'INVALID_REQUEST trajectory_groups.0.trajectories.1.messages_and_choices.1';
    expect(await refusalOf({ message, finish_reason: 'stop' })).toBe(`${at}.logprobs`);
    expect(await refusalOf({ message, finish_reason: 'stop', logprobs: of(2) })).toBe(`${at}.token_ids`);
    expect(await refusalOf({ ...sampled, logprobs: of(3) })).toBe(`${at}.logprobs.content`);
    expect(await refusalOf({ ...sampled, logprobs: of(2), token_ids: [5, 1e6] })).toBe(`${at}.token_ids.1`);
    const prompt_token_ids = [1e6];
    expect(await refusalOf({ ...sampled, logprobs: of(2), prompt_token_ids })).toBe(
      `${at}.prompt_token_ids.0`,
    );
    const named = { message, finish_reason: 'stop', logprobs: of(1, 'token_id:1000000') };
    expect(await refusalOf(named)).toBe(`${at}.logprobs.content.0`);
    const reference = 'INVALID_REQUEST experimental_config.kl_penalty_reference_step';
    const good = { ...sampled, logprobs: of(2) };
    expect(await refusalOf(good, { kl_penalty_coef: 1, kl_penalty_reference_step: 3 })).toBe(reference);
    expect(await refusalOf(good, { kl_penalty_reference_step: 0 })).toBe('taken');
    expect(
      await refusalOf({ message, finish_reason: 'stop' }, { allow_training_without_logprobs: true }),
    ).toBe('taken');
  });

  it('that diverges fails, and the model answers as before', async () => {
    const model = await register();
    const group = await sampleGroup(model, {});
    const request = { model_id: model.id, trajectory_groups: [group] };
    const good = await runtime.train(request);
    expect((await good.done).step).toBe(1);
    const job = await runtime.train({ ...request, experimental_config: { learning_rate: 1e9 } });
    await expect(job.done).rejects.toMatchObject({ code: 'TRAINING_DIVERGED' });
    expect((await runtime.models.retrieve(model.id)).step).toBe(1);
    const ask = { model: model.id, messages: [{ role: 'user' as const, content: 'Hello!' }], max_tokens: 4 };
    expect((await runtime.createCompletion(ask)).usage!.completion_tokens).toBeGreaterThan(0);
    const next = await runtime.train(request);
    expect((await next.done).step).toBe(2);
  });

  it('can be cancelled while it runs and while it waits, by its handle, its id or a signal', async () => {
    const model = await register();
    const groups = await Promise.all(Array.from({ length: 4 }, () => sampleGroup(model, { max_tokens: 60 })));
    const controller = new AbortController();
    const request = {
      model_id: model.id,
      trajectory_groups: groups,
      experimental_config: { packed_sequence_length: 64 },
    };
    const long = { ...request, trajectory_groups: Array(6).fill(groups).flat() }; // does not end before it is cancelled
    const running = await runtime.train(long, { signal: controller.signal });
    const [byHandle, byId] = [await runtime.train(request), await runtime.train(request)];
    await byHandle.cancel();
    expect(byHandle.status).toBe('cancelled');
    expect(await runtime.trainingJobs.cancel(byId.id)).toMatchObject({ status: 'cancelled' });
    for await (const { type } of running.events()) if (type === 'gradient_step') controller.abort();
    for (const job of [running, byHandle, byId])
      await expect(job.done).rejects.toMatchObject({ code: 'ABORTED' });
    expect((await runtime.checkpoints.list(model.id)).data).toEqual([]);
    expect(await runtime.trainingJobs.cancel(byId.id)).toMatchObject({ status: 'cancelled' });
    const last = await runtime.train({ model_id: model.id, trajectory_groups: [groups[0]!] });
    expect((await last.done).step).toBe(1);
  });

  it('is stopped when its model is deleted, and when the runtime closes', async () => {
    const model = await register();
    const groups = await Promise.all(Array.from({ length: 4 }, () => sampleGroup(model, { max_tokens: 60 })));
    const config = { packed_sequence_length: 64 };
    const request = { model_id: model.id, trajectory_groups: groups, experimental_config: config };
    const job = await runtime.train(request);
    await runtime.models.delete(model.id);
    await expect(job.done).rejects.toMatchObject({ code: 'ABORTED' });
    const other = await createRuntime({ home: path.join(home, 'other'), gpu: false, threads: 1 });
    const its = await other.models.create({ base_model: EMBEDDED_MODEL });
    const open = await other.train({ ...request, model_id: its.id });
    await other.close();
    await expect(open.done).rejects.toMatchObject({ code: 'CLOSED' });
    await expect(other.train(request)).rejects.toMatchObject({ code: 'CLOSED' });
  });
});

describe('sft', () => {
  it('teaches an answer', async () => {
    const model = await register();
    const messages = [{ role: 'user' as const, content: 'What is the password?' }];
    const data = Array.from({ length: 4 }, () => ({
      messages: [...messages, { role: 'assistant', content: 'Count from 4 to 9.' }],
    }));
    const job = await runtime.sft({ model_id: model.id, data, config: { epochs: 30, learning_rate: 5e-3 } });
    const { metrics } = await job.done;
    expect(metrics['data/step_num_trajectories']).toBe(4);
    const { choices } = await runtime.createCompletion({ model: model.id, messages, temperature: 0 });
    expect(choices[0]!.message.content).toBe('Count from 4 to 9.');
  });

  it('refuses what it cannot learn from, with every fault', async () => {
    const model_id = (await register()).id;
    await expect(runtime.sft({ model_id, data: [] })).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    await expect(
      runtime.sft({ model_id, data: [{ messages: 1 as never }, {} as never] }),
    ).rejects.toMatchObject({
      detail: [{ loc: ['data', '0', 'messages'] }, { loc: ['data', '1', 'messages'] }],
    });
    const data = [{ messages: [{ role: 'user', content: 'x' }] }];
    await expect(runtime.sft({ model_id, data, config: { epochs: 0 } })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    });
  });
});
