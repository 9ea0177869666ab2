/** Rollouts of real clients, without a port: trajectories have the engine's ids and log-probabilities. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Message, Trajectory, TrajectoryChoice } from '../../../src/protocol/index.ts';
import { record } from '../../../src/rl/rollout/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { connect, serve } from '../../../src/serve/http/index.ts';
import { baseURL, clients, JSON_BODY, QUESTION, user, weather } from './recorded-clients.ts';

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-record-'));
let runtime: Runtime;
let model: string;
beforeAll(async () => {
  runtime = await createRuntime({ home, threads: 1, prefixCache: false, speculation: false });
  model = (await runtime.models.create({ base_model: 'onpolicy-tiny' })).id;
});
afterAll(async () => {
  await runtime.close();
  fs.rmSync(home, { recursive: true, force: true });
});

const choicesIn = (entries: Trajectory['messages_and_choices']) =>
  entries.filter((entry): entry is TrajectoryChoice => 'message' in entry);

/** Returns the engine's answers to the turns of a trajectory, requested one by one and greedy, so that every client's sampling agrees. */
async function engineTurns({ messages_and_choices, tools }: Trajectory) {
  const turns = [];
  for (const [index, entry] of messages_and_choices.entries()) {
    if (!('message' in entry)) continue;
    const messages = messages_and_choices
      .slice(0, index)
      .map((one) => ('message' in one ? one.message : one)) as Message[];
    const { choices, prompt_token_ids } = await runtime.createCompletion({
      model,
      messages,
      tools,
      temperature: 0,
      max_tokens: 40,
      logprobs: true,
      return_token_ids: true,
    });
    turns.push({
      prompt_token_ids,
      token_ids: choices[0]!.token_ids,
      logprobs: choices[0]!.logprobs!.content.map(({ logprob }) => logprob),
    });
  }
  return turns;
}

const recordedTurns = ({ messages_and_choices }: Trajectory) =>
  choicesIn(messages_and_choices).map(({ prompt_token_ids, token_ids, logprobs }) => ({
    prompt_token_ids,
    token_ids,
    logprobs: logprobs!.content!.map(({ logprob }) => logprob),
  }));

it('a rollout of a model at a step says the step, so that its metrics are filed there', async () => {
  const recorder = runtime.record({ model: `${model}@0` });
  await recorder.service.createCompletion({ messages: [user(QUESTION)], max_tokens: 2 });
  const versions = { initial_policy_version: 0, final_policy_version: 0 };
  expect(recorder.finish({ reward: 1 })).toMatchObject(versions);
});

describe('a rollout with a tool', () => {
  it.each(Object.entries(clients))('%s: ids and log-probabilities are the engine’s', async (_, rollOut) => {
    const recorder = runtime.record({ model });
    await rollOut(recorder.fetch);
    const trajectory = recorder.finish({ reward: 1, metrics: { turns: 2 } });
    expect(trajectory).toMatchObject({ reward: 1, metrics: { turns: 2 } });
    expect(trajectory.additional_histories).toBeUndefined();
    expect(
      trajectory.messages_and_choices.map((entry) => ('message' in entry ? 'choice' : entry.role)),
    ).toEqual(['user', 'choice', 'tool', 'choice']);
    expect(choicesIn(trajectory.messages_and_choices)[0]!.message.tool_calls).toMatchObject([
      { function: { name: 'get_weather', arguments: '{"city": "Paris"}' } },
    ]);
    expect(trajectory.tools).toMatchObject([{ function: { name: 'get_weather' } }]);
    expect(recordedTurns(trajectory)).toEqual(await engineTurns(trajectory));
  });

  it('goes on after a call whose arguments are no JSON', async () => {
    const recorder = runtime.record({ model });
    const client = new OpenAI({ baseURL, apiKey: 'any', fetch: recorder.fetch, maxRetries: 0 });
    const request = { model, tools: [weather as OpenAI.ChatCompletionTool], temperature: 0 };
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: QUESTION }];
    const { choices } = await client.chat.completions.create({ ...request, messages, max_tokens: 16 });
    const { message } = choices[0]!;
    const call = message.tool_calls![0] as OpenAI.ChatCompletionMessageFunctionToolCall;
    expect(() => JSON.parse(call.function.arguments)).toThrow(SyntaxError);
    messages.push(message, { role: 'tool', tool_call_id: call.id, content: 'expected JSON' });
    await client.chat.completions.create({ ...request, messages, max_tokens: 4 });
    const again = { messages: messages as Message[], max_tokens: 4 };
    await recorder.service.createCompletion(again);
    await runtime.createCompletion(again);
    const trajectory = recorder.finish({ reward: 0 });
    expect(choicesIn(trajectory.messages_and_choices)).toHaveLength(2);
    const job = await runtime.train({
      model_id: model,
      trajectory_groups: [{ trajectories: [trajectory, trajectory] }],
    });
    await job.done;
  });

  it('keeps how each answer was sampled, as its request said', async () => {
    const recorder = runtime.record({ model });
    const messages: Message[] = [{ role: 'user', content: 'hi' }];
    const plain = { messages, max_tokens: 4 };
    await recorder.service.createCompletion({ ...plain, temperature: 0.5, top_p: 0.9, top_k: null });
    await recorder.service.createCompletion({ ...plain, min_p: 0.1, top_k: 5, seed: 2 });
    await recorder.service.createCompletion({ ...plain, seed: 3 });
    await recorder.service.createTextCompletion!({ prompt: 'hi', max_tokens: 4, temperature: 2 });
    const { messages_and_choices: first, additional_histories: others } = recorder.finish({ reward: 1 });
    const all = [
      first,
      ...others!.map((history) =>
        'messages_and_choices' in history ? history.messages_and_choices : history,
      ),
    ];
    expect(all.flatMap(choicesIn).map(({ sampling_params }) => sampling_params)).toEqual([
      { temperature: 0.5, top_p: 0.9 },
      { min_p: 0.1, top_k: 5 },
      undefined,
      { temperature: 2 },
    ]);
  });

  it('trains, and the trainer agrees on the probabilities', async () => {
    const rollOut = async (reward: number) => {
      const recorder = runtime.record({ model });
      const client = new OpenAI({ baseURL, apiKey: 'any', fetch: recorder.fetch, maxRetries: 0 });
      const ask = (messages: OpenAI.ChatCompletionMessageParam[]) =>
        client.chat.completions.create({ model: 'any', messages, max_tokens: 24, seed: reward });
      const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Tell me a story.' }];
      messages.push((await ask(messages)).choices[0]!.message, { role: 'user', content: 'What is 1 + 2?' });
      await ask(messages);
      return recorder.finish({ reward });
    };
    const trajectories = [await rollOut(0), await rollOut(1)];
    const job = await runtime.train({ model_id: model, trajectory_groups: [{ trajectories }] });
    const { metrics } = await job.done;
    expect(metrics['train/probs_corr']).toBeGreaterThan(0.9999);
    expect(metrics['data/step_num_groups_trainable']).toBe(1);
  });
});

describe('the client', () => {
  it('gets what it asked for, and no more', async () => {
    const recorder = runtime.record({ model });
    const request = { messages: [user('What is the capital of Peru?')], temperature: 0 };
    const { choices, prompt_token_ids } = await recorder.service.createCompletion(request);
    expect([choices[0]!.logprobs, choices[0]!.token_ids, prompt_token_ids]).toEqual([null, null, null]);
    const asked = await recorder.service.createCompletion({
      ...request,
      logprobs: true,
      top_logprobs: 1,
      return_token_ids: true,
    });
    expect(asked.choices[0]!.logprobs!.content[0]!.top_logprobs).toHaveLength(1);
    expect(asked.prompt_token_ids).not.toBeNull();
    const stream = await recorder.service.createCompletion({ ...request, stream: true });
    for await (const { choices } of stream)
      for (const choice of choices) expect([choice.logprobs, choice.token_ids ?? null]).toEqual([null, null]);
    recorder.finish({ reward: 0 });
  });

  it('aborts, and what a stream gave until then counts', async () => {
    const recorder = runtime.record({ model });
    const client = new OpenAI({ baseURL, apiKey: 'any', fetch: recorder.fetch, maxRetries: 0 });
    const stream = await client.chat.completions.create({
      model: 'any',
      messages: [{ role: 'user', content: 'Tell me a story.' }],
      stream: true,
    });
    let chunks = 0;
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content && ++chunks === 3) break;
    await expect.poll(() => runtime.stats().running, { interval: 5 }).toBe(0);
    const [choice] = choicesIn(recorder.finish({ reward: 0 }).messages_and_choices);
    expect(choice!.finish_reason).toBeNull();
    expect(choice!.token_ids!.length).toBeGreaterThan(0);
    expect(choice!.logprobs!.content).toHaveLength(choice!.token_ids!.length);
  });

  it('keeps all choices of a request, and goes on with one', async () => {
    const recorder = runtime.record({ model });
    const messages = [user('Tell me a story.')];
    const { choices } = await recorder.service.createCompletion({ messages, n: 3, seed: 5, max_tokens: 8 });
    await recorder.service.createCompletion({
      messages: [...messages, choices[1]!.message, user('Go on.')],
      max_tokens: 8,
    });
    const trajectory = recorder.finish({ reward: 0 });
    const histories = [trajectory, ...trajectory.additional_histories!];
    expect(histories.map(({ messages_and_choices }) => choicesIn(messages_and_choices).length)).toEqual([
      1, 1, 2,
    ]);
  });
});

describe('a recorder', () => {
  it('refuses wrong options, rewards and uses by name', async () => {
    expect(() => runtime.record({ model: '' })).toThrow('model: expected the id or name of a model, got ');
    expect(() => runtime.record({ model, steps: 1 } as never)).toThrow('steps: not a field of options');
    const recorder = runtime.record({ model });
    expect(() => recorder.finish({ reward: 1 })).toThrow('no request was answered');
    const request = { messages: [user('Hello.')], max_tokens: 2 };
    await expect(
      recorder.service.createCompletion({ ...request, use_beam_search: true, n: 2 }),
    ).rejects.toMatchObject({ code: 'UNSUPPORTED', param: 'use_beam_search' });
    await expect(recorder.service.createCompletion({ messages: 1 } as never)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    });
    await recorder.service.createCompletion(request);
    expect(() => recorder.finish({ reward: Number.NaN })).toThrow(
      'reward: expected a finite number, got NaN',
    );
    recorder.finish({ reward: 1 });
    expect(() => recorder.finish({ reward: 1 })).toThrow('the recording has ended');
    await expect(recorder.service.createCompletion(request)).rejects.toMatchObject({ code: 'CLOSED' });
    const response = await recorder.fetch(`${baseURL}/chat/completions`, {
      method: 'POST',
      headers: JSON_BODY,
      body: JSON.stringify(request),
    });
    expect(response.status).toBe(503);
  });

  it('records a server as well, whole answers and streams', async () => {
    const server = await serve(runtime, { port: 0 });
    const service = connect({ baseUrl: server.url });
    const recorder = record(service, { model, seed: 3 });
    const messages = [user('What is the weather in Paris?')];
    const request = { messages, tools: [weather], temperature: 0, max_tokens: 40 };
    const { choices } = await recorder.service.createCompletion(request);
    const stream = await recorder.service.createCompletion({ ...request, stream: true });
    for await (const _ of stream);
    const { message } = choices[0]!;
    const result: Message = { role: 'tool', tool_call_id: message.tool_calls[0]!.id, content: 'sunny' };
    await recorder.service.createCompletion({ ...request, messages: [...messages, message, result] });
    const trajectory = recorder.finish({ reward: 1 });
    const histories = [trajectory, ...trajectory.additional_histories!];
    for (const history of histories) {
      const one = { ...history, reward: 0 };
      expect(recordedTurns(one)).toEqual(await engineTurns(one));
    }
    expect(histories.map(({ messages_and_choices }) => messages_and_choices.length)).toEqual([2, 4]);
    await service.close();
    await server.close();
  });

  it('records texts that are continued, each a history of its own, and lets embeddings pass', async () => {
    const recorder = runtime.record({ model, seed: 3 });
    const { service } = recorder;
    const asked = { prompt: ['One, two,', [5, 6, 7]], max_tokens: 4, ignore_eos: true };
    const whole = await service.createTextCompletion!({
      ...asked,
      prompt: asked.prompt[0] as string,
      echo: true,
      n: 2,
    });
    expect(whole.choices.map(({ logprobs, token_ids }) => [logprobs, token_ids])).toEqual([
      [null, null],
      [null, null],
    ]);
    const stream = await service.createTextCompletion!({
      ...asked,
      prompt: asked.prompt[1] as number[],
      stream: true,
    });
    for await (const { choices } of stream) expect(choices[0]?.prompt_token_ids ?? null).toBeNull();
    await expect(service.createEmbeddings!({ input: 'x' })).rejects.toMatchObject({ code: 'UNSUPPORTED' });
    const trajectory = recorder.finish({ reward: 1 });
    const histories = [trajectory, ...trajectory.additional_histories!];
    expect(histories).toHaveLength(3);
    for (const { messages_and_choices } of histories) {
      const [choice] = messages_and_choices as TrajectoryChoice[];
      const { prompt_token_ids, token_ids, logprobs } = choice!;
      expect(token_ids).toHaveLength(4);
      const prompt = [...prompt_token_ids!, ...token_ids!];
      const scored = await runtime.createTextCompletion({
        model,
        prompt,
        max_tokens: 0,
        echo: true,
        logprobs: 0,
      });
      const expected = scored.choices[0]!.logprobs!.token_logprobs.slice(-4) as number[];
      for (const [i, { logprob }] of logprobs!.content!.entries())
        expect(logprob).toBeCloseTo(expected[i]!, 2);
    }
    expect(histories[2]!.messages_and_choices).toMatchObject([{ prompt_token_ids: [5, 6, 7] }]);
  });

  it('ends answers that loop, if asked to, but not those with rules of their own', async () => {
    const loops = { max_pattern_size: 4, min_count: 3 };
    const recorder = runtime.record({ model, repetitionDetection: loops });
    const asked = {
      messages: [{ role: 'user' as const, content: 'Laugh.' }],
      structured_outputs: { regex: '(ha ){30}' },
      max_tokens: 90,
    };
    const ended = await recorder.service.createCompletion(asked);
    expect(ended.choices[0]).toMatchObject({ finish_reason: 'length', stop_reason: 'repetition_detected' });
    const own = await recorder.service.createCompletion({ ...asked, repetition_detection: {} });
    expect(own.choices[0]!.stop_reason).toBeNull();
    const { messages_and_choices } = recorder.finish({ reward: 0 });
    expect(choicesIn(messages_and_choices)[0]).toMatchObject({ finish_reason: 'length' });
    expect(() => runtime.record({ model, repetitionDetection: { max_pattern_size: -1 } })).toThrow(
      'repetitionDetection.max_pattern_size: expected an integer from 0 to 65536, got -1',
    );
  });

  it('gives requests without a seed one, the same each time', async () => {
    const sampled = async (seed: number) => {
      const recorder = runtime.record({ model, seed });
      for (let i = 0; i < 2; i++)
        await recorder.service.createCompletion({ messages: [user('Tell me a story.')], max_tokens: 16 });
      const trajectory = recorder.finish({ reward: 0 });
      return [trajectory, ...trajectory.additional_histories!].map(
        ({ messages_and_choices }) => choicesIn(messages_and_choices)[0]!.token_ids,
      );
    };
    const [first, second] = await sampled(1);
    expect(second).not.toEqual(first);
    expect(await sampled(1)).toEqual([first, second]);
    expect(await sampled(2)).not.toEqual([first, second]);
  });

  it('ends what still runs', async () => {
    const recorder = runtime.record({ model });
    const request = { messages: [user('Tell me a story.')] };
    await recorder.service.createCompletion({ ...request, max_tokens: 1 });
    const endless = recorder.service.createCompletion({ ...request, ignore_eos: true });
    endless.catch(() => {});
    await expect.poll(() => runtime.stats().running, { interval: 2 }).toBe(1);
    expect(choicesIn(recorder.finish({ reward: 0 }).messages_and_choices)).toHaveLength(1);
    await expect(endless).rejects.toMatchObject({ code: 'ABORTED' });
  });
});
