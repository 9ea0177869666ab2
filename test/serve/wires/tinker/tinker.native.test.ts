/** Requests as Tinker's package sends them -> the models and samples of a runtime, over HTTP. */
import fs from 'node:fs';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { floatsIn, int32sIn, ProtobufMessage } from '../../../../src/serve/wires/tinker/protobuf.ts';
import {
  createModel,
  dataBody,
  learn,
  openServer,
  readOutput,
  resultOf,
  runtime,
  send,
  stepTo,
} from './exchange.ts';

openServer();

const weights = [0, 0, 1, 0.5, 1, 2];

describe('requests that the package sent', () => {
  type Sent = {
    readonly path: string;
    readonly body?: object;
    readonly model?: string;
    readonly message?: string;
  };
  const { requests } = JSON.parse(
    fs.readFileSync(new URL('./sdk-requests.json', import.meta.url), 'utf8'),
  ) as { readonly requests: readonly Sent[] };

  it('are answered', async () => {
    const values: Record<string, string> = {};
    const fill = (text: string) => text.replaceAll(/\{\w+\}/g, (name) => values[name]!);
    /** A message with the id of its model. */
    const messageOf = (message: string, model: string) => {
      const bytes = Buffer.from(message, 'base64');
      bytes.write(values[model]!, bytes.indexOf('0'.repeat(36)), 'latin1');
      return bytes;
    };
    // biome-ignore lint/suspicious/noExplicitAny: results of any endpoint
    const results: Record<string, any[]> = {};
    for (const { path: at, body, message, model } of requests) {
      const given = message
        ? messageOf(message, model!)
        : body
          ? (JSON.parse(fill(JSON.stringify(body))) as object)
          : null;
      const begun = await send(fill(at), given, given ? 'POST' : 'GET');
      expect([at, begun.status, begun.ignored]).toEqual([at, 200, null]);
      const result = begun.body.request_id ? await resultOf(Promise.resolve(begun)) : begun.body;
      expect([at, result.error]).toEqual([at, undefined]);
      results[at] = [...(results[at] ?? []), result];
      for (const name of ['session_id', 'model_id', 'sampling_session_id', 'path']) {
        const value: unknown = result[name];
        if (typeof value !== 'string' || Object.values(values).includes(value)) continue;
        const count = Object.keys(values).filter((key) => key.startsWith(`{${name}`)).length;
        values[`{${name}_${count}}`] = value;
      }
    }
    const scored = results['forward_backward']!.map((bytes) => readOutput(bytes).logprobs);
    expect(scored.map(({ length }) => length)).toEqual([6, 10, 6, 6, 6, 6, 6, 6]);
    expect(scored[1]!.slice(0, 6)).toEqual(scored[0]); // no optimizer step in between
    expect(scored[2]).not.toEqual(scored[0]);
    expect(scored[6]).toEqual(scored[7]); // both models have loaded the same weights
    expect(results['optim_step']!.map(({ metrics }) => metrics['train/skipped_steps'])).toEqual([0, 0]);
    const answers = results['asample']!.map((bytes) => new ProtobufMessage(bytes));
    expect(answers.map((answer) => answer.messages(1).length)).toEqual([2, 1]);
    expect(answers.map((answer) => floatsIn(answer.bytes(2)!)!.length)).toEqual([3, 3]);
    expect(results['get_server_capabilities']![0].supported_models).toContainEqual({
      model_name: 'small',
      max_context_length: 1024,
    });
    expect(results['samplers/{sampling_session_id_0}']).toMatchObject([{ base_model: 'small' }]);
  });
});

describe('samples', () => {
  it('of base models are those of text completions, with log-probabilities', async () => {
    const prompt = { chunks: [{ type: 'encoded_text', tokens: [5, 9] }, { tokens: [14] }] };
    const sampling_params = { max_tokens: 5, temperature: 1, top_k: -1, top_p: 1, seed: 4 };
    const asked = { base_model: 'small', prompt, num_samples: 2, sampling_params };
    const bytes = await resultOf(
      send('asample', { ...asked, prompt_logprobs: true, topk_prompt_logprobs: 2 }),
    );
    const message = new ProtobufMessage(bytes);
    const whole = await runtime.createTextCompletion({
      model: 'small',
      prompt: [5, 9, 14],
      n: 2,
      max_tokens: 5,
      temperature: 1,
      seed: 4,
      logprobs: 0,
      prompt_logprobs: 2,
      return_token_ids: true,
    });
    const sequences = message.messages(1).map((sequence) => ({
      reason: sequence.integer(1),
      ids: int32sIn(sequence.bytes(2)!),
      logprobs: floatsIn(sequence.bytes(3)!)!,
    }));
    expect(sequences.map(({ ids }) => ids)).toEqual(whole.choices.map(({ token_ids }) => token_ids));
    for (const [i, { logprobs, reason }] of sequences.entries()) {
      const choice = whole.choices[i]!;
      expect(reason).toBe(choice.finish_reason === 'stop' ? 0 : 1);
      expect(logprobs).toEqual(choice.logprobs!.token_logprobs.map((value: number) => Math.fround(value)));
    }
    const places = whole.choices[0]!.prompt_logprobs!;
    const own = floatsIn(message.bytes(2)!)!;
    expect(own[0]).toBeNaN();
    expect(own.slice(1)).toEqual([9, 14].map((id, i) => Math.fround(places[i + 1]![id]!.logprob)));
    const top = message.message(3)!;
    const ids = int32sIn(top.bytes(1)!)!;
    expect([top.integer(3), top.integer(4), ids.length]).toEqual([2, 3, 6]);
    expect([ids.slice(0, 2), floatsIn(top.bytes(2)!)!.slice(0, 2)]).toEqual([
      [0, 0],
      [-99_999, -99_999],
    ]);
    for (const i of [1, 2])
      for (const rank of [1, 2]) expect(places[i]![ids[2 * i + rank - 1]!]!.rank).toBe(rank);
  });

  it('end with what stopped them', async () => {
    const greedy = { max_tokens: 8, temperature: 0 };
    const ask = async (sampling_params: object) => {
      const prompt = {
        chunks: [{ type: 'encoded_text', tokens: await runtime.tokenize('The capital of Peru is') }],
      };
      const bytes = await resultOf(send('asample', { base_model: 'small', prompt, sampling_params }));
      const sequence = new ProtobufMessage(bytes).message(1)!;
      const ids = int32sIn(sequence.bytes(2)!)!;
      expect(floatsIn(sequence.bytes(3)!)).toHaveLength(ids.length);
      return { ids, isStop: sequence.integer(1) === 0 };
    };
    const { ids } = await ask({ ...greedy, max_tokens: 3 });
    expect(ids).toHaveLength(3);
    expect(await ask({ ...greedy, stop: [ids[1]!] })).toEqual({ ids: ids.slice(0, 2), isStop: true });
    const text = await runtime.detokenize([ids[1]!]);
    expect(await ask({ ...greedy, stop: text })).toEqual({ ids: ids.slice(0, 2), isStop: true });
  });
});

describe('a refused request', () => {
  it.each<[string, object | null, number, RegExp]>([
    ['create_model', { session_id: 'x', model_seq_id: 0 }, 400, /base_model: this field is required/],
    ['optim_step', { model_id: 'x', seq_id: 1, adam_params: {} }, 404, /there is no training run "x"/],
    ['get_info', { model_id: 'x' }, 404, /there is no training run "x"/],
    ['weights_info', { tinker_path: 'x' }, 400, /tinker_path: expected a path such as tinker:/],
    [
      'create_sampling_session',
      { session_id: 'x', sampling_session_seq_id: 0 },
      400,
      /expected one of sampling_session_id, model_path and base_model/,
    ],
    [
      'create_sampling_session',
      { session_id: 'x', sampling_session_seq_id: 0, model_path: 'tinker://x/weights/a' },
      400,
      /model_path: expected a path that save_weights_for_sampler returned/,
    ],
    [
      'asample',
      { sampling_session_id: 'x', prompt: { chunks: [{ tokens: [1] }] } },
      404,
      /no sampling session x/,
    ],
    [
      'asample',
      { base_model: 'small', prompt: { chunks: [{ type: 'image', data: '', format: 'png' }] } },
      400,
      /prompt\.chunks\.0\.type: expected "encoded_text": prompts of tokens have no images/,
    ],
    [
      'asample',
      { base_model: 'small', prompt: { chunks: [{ tokens: [1] }] }, num_samples: 1000 },
      413,
      /num_samples: expected at most 128, got 1000/,
    ],
    ['retrieve_future', { request_id: 'x' }, 404, /there is no request "x"/],
    ['samplers/x', null, 404, /there is no sampling session x/],
  ])('%s %j', async (at, body, status, message) => {
    const answer = await send(at, body, body === null ? 'GET' : 'POST');
    expect(answer.body.error).toMatch(message);
    expect(answer.status).toBe(status);
  });

  it('of a step does not hold up the steps after it', async () => {
    const model_id = await createModel();
    const named = (extra: object) => send('save_weights', { model_id, ...extra });
    const refused = await named({ seq_id: 1, path: '../x' });
    expect([refused.status, refused.body.error]).toEqual([
      400,
      expect.stringMatching(/path: expected a name of/),
    ]);
    const lacking = await send('forward_backward', dataBody(model_id, 2, 'ppo', {}));
    expect([lacking.status, lacking.body.error]).toEqual([200, undefined]);
    expect(await resultOf(Promise.resolve(lacking))).toMatchObject({
      category: 'user',
      error: expect.stringMatching(/data\.0\.loss_fn_inputs\.logprobs/),
    });
    const saved = await resultOf(named({ seq_id: 3, path: 'a', ttl_seconds: 60 }));
    expect(saved).toEqual({ type: 'save_weights', path: `tinker://${model_id}/weights/a` });
    expect(await resultOf(named({ seq_id: 4, path: 'a' }))).toMatchObject({ category: 'user' });
    expect(await resultOf(named({ seq_id: 5, path: 'a', overwrite: true }))).toEqual(saved);
    expect(await resultOf(send('unload_model', { model_id }))).toEqual({ type: 'unload_model', model_id });
  });

  it('has a body of another type or encoding', async () => {
    const model_id = await createModel();
    const packed = gzipSync(dataBody(model_id, 1, 'cross_entropy', { weights }));
    const encoded = (encoding: string, body: Uint8Array) =>
      send('forward_backward', body, 'POST', { 'content-encoding': encoding });
    expect(readOutput(await resultOf(encoded('gzip', packed))).logprobs).toHaveLength(6);
    expect((await encoded('gzip', packed.subarray(10))).body.error).toMatch(
      /not compressed as Content-Encoding/,
    );
    expect((await encoded('lzw', packed)).body.error).toMatch(/Content-Encoding: expected gzip/);
    const answer = await send('forward_backward', {});
    expect([answer.status, answer.body.error]).toEqual([
      400,
      'Content-Type: expected application/x-protobuf, got application/json',
    ]);
  });
});

it('a repeated request gets the first answer', async () => {
  const model_id = await createModel();
  const body = { model_id, seq_id: 1, path: 'once' };
  const [first, second] = await Promise.all([send('save_weights', body), send('save_weights', body)]);
  expect(second.body).toEqual(first.body);
  expect(await resultOf(Promise.resolve(second))).toMatchObject({ type: 'save_weights' });
  expect((await runtime.trainingRuns.retrieve(model_id)).sequence).toBe(1);
});

it('weights are loaded by another model, unless its adapter has another shape', async () => {
  const model_id = await createModel();
  const { logprobs } = await learn(model_id, 1, 'cross_entropy', { weights });
  await stepTo(model_id, 2);
  const { path: at } = await resultOf(send('save_weights', { model_id, seq_id: 3, path: 'a' }));
  const after = await learn(model_id, 4, 'cross_entropy', { weights }, { isForward: true });
  expect(after.logprobs).not.toEqual(logprobs);
  expect((await send('weights_info', { tinker_path: at })).body).toEqual({
    base_model: 'small',
    is_lora: true,
    lora_rank: 4,
  });
  const heir = await createModel(9);
  const load = (id: string, seq_id: number, from = at) =>
    resultOf(send('load_weights', { model_id: id, seq_id, path: from, optimizer: true }));
  expect(await load(heir, 1)).toEqual({ type: 'load_weights', path: at, model_id: heir });
  const inherited = await learn(heir, 2, 'cross_entropy', { weights }, { isForward: true });
  expect(inherited.logprobs).toEqual(after.logprobs);
  expect(await load(heir, 3, at.replace(/a$/, 'b'))).toMatchObject({
    category: 'user',
    error: expect.stringMatching(/name: expected one of a, got "b"/),
  });
  const lora_config = { rank: 2, seed: 1 };
  const request = { session_id: 'there', model_seq_id: 0, base_model: 'small', lora_config };
  const { model_id: other } = await resultOf(send('create_model', request));
  expect(await load(other, 1)).toMatchObject({ category: 'user', error: expect.stringMatching(/rank/) });
});
