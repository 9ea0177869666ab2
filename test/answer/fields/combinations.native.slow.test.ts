/** Fields together, and values that are absent, null or at their bounds: their result, or the field named as wrong. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { PARIS, PARIS_ANSWER, STORY } from '../asking.ts';
import { ask, EXACT_MODEL, type Fields } from './model.ts';

let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1 });
});
afterAll(() => runtime.close());

const USER = [{ role: 'user' as const, content: PARIS }];

describe('sampling', () => {
  it.each<[string, Fields]>([
    ['temperature 0 with top_p, top_k, min_p and a seed', { top_p: 0.5, top_k: 3, min_p: 0.2, seed: 5 }],
    [
      'all numbers null',
      {
        n: null,
        frequency_penalty: null,
        presence_penalty: null,
        repetition_penalty: null,
        top_p: null,
        top_k: null,
        min_p: null,
        seed: null,
        max_tokens: null,
        logit_bias: null,
        stop: null,
        stop_token_ids: null,
        allowed_token_ids: null,
      },
    ],
    ['seed -1', { seed: -1 }],
    ['an empty bias', { logit_bias: {} }],
    ['length_penalty without beams', { length_penalty: 7 }],
    ['an empty model name', { model: '' }],
    [
      'tools null, documents null, template null',
      {
        tools: null,
        documents: null,
        chat_template: null,
        reasoning_effort: null,
        parallel_tool_calls: null,
      },
    ],
    ['an empty list of processors', { logits_processors: [] }],
    ['a response format of text', { response_format: { type: 'text' } }],
    [
      'a JSON schema format without a schema',
      { response_format: { type: 'json_schema', json_schema: { name: 'x' } } },
    ],
    [
      'structured_outputs without a constraint',
      { structured_outputs: { json_object: false, disable_fallback: true } },
    ],
    ['required among no tools', { tools: [], tool_choice: 'required' }],
    ['keywords of a media processor', { mm_processor_kwargs: { size: 1 } }],
    ['settings for reading media', { media_io_kwargs: { image: { size: 1 } } }],
    ['a transfer of other engines', { kv_transfer_params: { do_remote_decode: false, remote_host: null } }],
    [
      'the bounds of the rest',
      { priority: 0, cache_salt: null, min_tokens: 0, truncate_prompt_tokens: 1024, bad_words: [] },
    ],
  ])('%s is the greedy answer', async (_, fields) => {
    expect((await ask(runtime, PARIS, fields)).choices[0]!.message.content).toBe(PARIS_ANSWER);
  });

  it.each<[string, Fields, string]>([
    ['temperature 0 with n 2', { temperature: 0, n: 2 }, 'n'],
    ['top_logprobs without logprobs', { top_logprobs: 2 }, 'top_logprobs'],
    ['an empty allowed list', { allowed_token_ids: [] }, 'allowed_token_ids'],
    ['an allowed id beyond the vocabulary', { allowed_token_ids: [1024] }, 'allowed_token_ids'],
    ['a stop id beyond the vocabulary', { stop_token_ids: [1024] }, 'stop_token_ids'],
    ['a bias beyond the vocabulary', { logit_bias: { 1024: 1 } }, 'logit_bias'],
    ['an empty stop string', { stop: ['a', ''] }, 'stop'],
    ['an empty bad word', { bad_words: [''] }, 'bad_words'],
    ['bad_words null', { bad_words: null as never }, 'bad_words'],
    ['max_completion_tokens 0', { max_completion_tokens: 0 }, 'max_completion_tokens'],
    ['truncate_prompt_tokens 0', { truncate_prompt_tokens: 0 }, 'truncate_prompt_tokens'],
    ['a template variable tokenize', { chat_template_kwargs: { tokenize: true } }, 'chat_template_kwargs'],
    ['stream_options without stream', { stream_options: { include_usage: true } }, 'stream_options'],
    ['tool_choice auto without tools', { tool_choice: 'auto' }, 'tool_choice'],
    [
      'an engine of another name',
      { structured_outputs: { regex: 'a', _backend: 'xgrammar' as never } },
      'structured_outputs',
    ],
    ['two constraints', { structured_outputs: { regex: 'a', choice: ['a'] } }, 'structured_outputs'],
    [
      'response_format and structured_outputs',
      { response_format: { type: 'json_object' }, structured_outputs: { regex: 'a' } },
      'response_format',
    ],
    ['a processor that nobody registered', { logits_processors: ['nobody.Knows'] }, 'logits_processors'],
    ['a string for a number', { n: '2' as never }, 'n'],
  ])('%s is an error that names the field', async (_, fields, param) => {
    await expect(ask(runtime, PARIS, fields)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      status: 400,
      param: expect.stringMatching(new RegExp(`^${param}`)),
    });
  });

  it('all faults come at once, with the closest name for an unknown field', async () => {
    const request = { messages: USER, temprature: 1, n: 0, stop: [''] };
    const error = await runtime.createCompletion(request as never).catch((cause) => cause);
    expect(error.detail.map(({ loc }: { loc: string[] }) => loc[0]).sort()).toEqual([
      'n',
      'stop',
      'temprature',
    ]);
    expect(error.message).toContain('temperature');
  });

  it('min_tokens is measured against what the context has left', async () => {
    await using small = await createRuntime({ threads: 1, contextSize: 128 });
    const left = 128 - (await ask(small, PARIS, { max_tokens: 1 })).usage.prompt_tokens;
    await expect(ask(small, PARIS, { min_tokens: left + 1 })).rejects.toMatchObject({ param: 'min_tokens' });
    expect((await ask(small, PARIS, { min_tokens: left })).usage.completion_tokens).toBe(left);
  });

  it('the same request gives the same tokens alone and in company; choice i has the seed + i', async () => {
    await using exact = await createRuntime({ threads: 1, model: EXACT_MODEL });
    const fields = { temperature: 1, max_tokens: 16, return_token_ids: true };
    const ids = async (seed: number | bigint, n = 1) =>
      (await ask(exact, STORY, { ...fields, seed, n })).choices.map(({ token_ids }) => token_ids);
    const alone = [await ids(40), await ids(41), await ids(42)].flat();
    expect((await Promise.all([ids(40), ids(41), ids(42), ids(7, 5)])).slice(0, 3).flat()).toEqual(alone);
    expect(await ids(40, 3)).toEqual(alone);
    expect(await ids(2n ** 63n - 1n)).toEqual(await ids(2n ** 63n - 1n));
    expect(await ids(-(2n ** 63n))).not.toEqual(await ids(5));
  });

  it('a constraint ends with a stop string or the length like any answer, without an error', async () => {
    const structured_outputs = { regex: '[0-9]{4}xyz[0-9]{4}' };
    const cut = (await ask(runtime, PARIS, { structured_outputs, max_tokens: 2 })).choices[0]!;
    expect(cut.finish_reason).toBe('length');
    const stopped = (await ask(runtime, PARIS, { structured_outputs, stop: ['xyz'] })).choices[0]!;
    expect(stopped).toMatchObject({
      message: { content: expect.stringMatching(/^\d{4}$/) },
      finish_reason: 'stop',
      stop_reason: 'xyz',
    });
  });

  it('a constraint and a mask that leave nothing fail their request', async () => {
    const structured_outputs = { choice: ['Paris'] };
    await expect(
      ask(runtime, PARIS, { structured_outputs, bad_words: ['Paris', 'P', 'Par', 'Pa'] }),
    ).rejects.toMatchObject({
      code: 'NO_ALLOWED_TOKEN',
    });
  });
});
