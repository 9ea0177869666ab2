import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LogitsProcessor } from '../../src/protocol/index.ts';
import type { Runtime } from '../../src/runtime/runtime.ts';
import { registerLogitsProcessor } from '../../src/sampling/logits-processors.ts';
import { STORY } from './asking.ts';
import { ask, closeRuntimes, EMBEDDED, openRuntime } from './models.ts';

const VOCABULARY = 1024;
let runtime: Runtime;
beforeAll(async () => {
  runtime = await openRuntime(EMBEDDED, undefined);
});
afterAll(closeRuntimes);

/** The ids that a request samples. */
async function tokens(fields: Parameters<typeof ask>[1]): Promise<number[]> {
  const answer = await runtime.createCompletion(
    ask(STORY, { max_tokens: 8, return_token_ids: true, ...fields }),
  );
  return answer.choices[0]!.token_ids!;
}

/** A processor after which only one token is possible. */
const only =
  (token: number): LogitsProcessor =>
  (_: Int32Array, logits: Float32Array) => {
    logits.fill(-Infinity)[token] = 0;
  };

describe('a logits processor', () => {
  it('that does nothing changes nothing, whatever else the request asks for', async () => {
    for (const fields of [
      {},
      { temperature: 1, seed: 7, n: 3, top_p: 0.9 },
      { temperature: 0.7, seed: 1, logprobs: true, top_logprobs: 3, n: 2 },
      { repetition_penalty: 1.4, logit_bias: { 70: 3 }, bad_words: ['the'], min_tokens: 5 },
    ]) {
      const request = ask(STORY, {
        max_tokens: 12,
        return_token_ids: true,
        speculation: false,
        ...fields,
      });
      const plain = await runtime.createCompletion(request);
      const hooked = await runtime.createCompletion({
        ...request,
        logits_processors: [() => {}, (_: Int32Array, logits: Float32Array) => logits],
      });
      expect(hooked.choices).toEqual(plain.choices);
    }
  });

  it.each([
    ['at its last token', {}],
    ['before min_tokens', { min_tokens: 40 }],
    ['at its last token, with log-probabilities', { logprobs: true, top_logprobs: 2 }],
    [
      'where other masks leave nothing',
      { structured_outputs: { regex: 'a*' }, allowed_token_ids: [97], max_tokens: 4 },
    ],
    ['before its first token', { structured_outputs: { regex: 'a*' }, allowed_token_ids: [80] }],
  ])('changes nothing about a grammar, which ends its choice %s', async (_, fields) => {
    const request = ask(STORY, {
      structured_outputs: { regex: '[0-9]{4}' },
      max_tokens: 60,
      return_token_ids: true,
      ...fields,
    });
    const plain = await runtime.createCompletion(request);
    const hooked = await runtime.createCompletion({ ...request, logits_processors: [() => {}] });
    expect(hooked.choices).toEqual(plain.choices);
    expect(hooked.usage.completion_tokens).toBe(plain.usage.completion_tokens);
  });

  it('gets what was generated, the prompt when it asks for it, and one row of its own', async () => {
    const seen: { prompt: number[] | null; output: number[]; length: number }[] = [];
    const answer = await runtime.createCompletion(
      ask(STORY, {
        max_tokens: 3,
        return_token_ids: true,
        logits_processors: [
          (output: Int32Array, logits: Float32Array) =>
            void seen.push({ prompt: null, output: [...output], length: logits.length }),
          (prompt, output, logits) =>
            void seen.push({ prompt: [...prompt], output: [...output], length: logits!.length }),
        ] as LogitsProcessor[],
      }),
    );
    const [ids, prompt] = [answer.choices[0]!.token_ids!, answer.prompt_token_ids!];
    expect(seen).toEqual(
      ids.flatMap((_, at) => [
        { prompt: null, output: ids.slice(0, at), length: VOCABULARY },
        { prompt, output: ids.slice(0, at), length: VOCABULARY },
      ]),
    );
  });

  it('edits in place or returns another row, one after the other', async () => {
    expect(await tokens({ logits_processors: [only(65)] })).toEqual(new Array(8).fill(65));
    const returned: LogitsProcessor = () => new Float32Array(VOCABULARY).fill(-Infinity).fill(1, 66, 67);
    expect(await tokens({ logits_processors: [only(65), returned] })).toEqual(new Array(8).fill(66));
    expect(await tokens({ logits_processors: [returned, only(65)] })).toEqual(new Array(8).fill(65));
  });

  it('runs after masks and bias, and before penalties', async () => {
    const rows: Float32Array[] = [];
    await tokens({
      max_tokens: 1,
      allowed_token_ids: [65, 66, 67],
      logit_bias: { 66: 50 },
      logits_processors: [(_: Int32Array, logits: Float32Array) => void rows.push(logits.slice())],
    });
    const plain: Float32Array[] = [];
    await tokens({
      max_tokens: 1,
      logits_processors: [(_: Int32Array, logits: Float32Array) => void plain.push(logits.slice())],
    });
    const expected = new Float32Array(VOCABULARY).fill(-Infinity);
    for (const id of [65, 66, 67]) expected[id] = plain[0]![id]! + (id === 66 ? 50 : 0);
    expect(rows).toEqual([expected]);
    // 70 is best before the penalty, 71 after it; then both have been used, and the next ids follow
    const ramp: LogitsProcessor = (_: Int32Array, logits: Float32Array) =>
      void logits.fill(-100).set([1, 0.5, 0.25], 70);
    expect(await tokens({ max_tokens: 4, presence_penalty: 2, logits_processors: [ramp] })).toEqual([
      70, 71, 72, 70,
    ]);
  });

  it('cannot bring back what the masks forbid, unless it says so itself', async () => {
    expect(await tokens({ allowed_token_ids: [80], logits_processors: [() => {}] })).toEqual(
      new Array(8).fill(80),
    );
    expect(await tokens({ allowed_token_ids: [80], logits_processors: [only(81)] })).toEqual(
      new Array(8).fill(81),
    );
  });

  it('does not show in raw log-probabilities', async () => {
    const plain = await runtime.createCompletion(
      ask(STORY, { max_tokens: 1, logprobs: true, top_logprobs: 1024 }),
    );
    const [hooked, beside] = await Promise.all([
      runtime.createCompletion(
        ask(STORY, {
          max_tokens: 1,
          logprobs: true,
          top_logprobs: 2,
          return_token_ids: true,
          logits_processors: [only(65)],
        }),
      ),
      runtime.createCompletion(ask(STORY, { max_tokens: 1, logprobs: true, top_logprobs: 2 })),
    ]);
    const [exact, edited, other] = [plain, hooked, beside].map(
      ({ choices }) => choices[0]!.logprobs!.content[0]!,
    );
    const best = exact!.top_logprobs
      .slice(0, 2)
      .map((entry) => ({ ...entry, logprob: expect.closeTo(entry.logprob, 4) }));
    expect(hooked.choices[0]!.token_ids).toEqual([65]);
    expect(edited!.top_logprobs).toEqual(best);
    expect(other!.top_logprobs).toEqual(best);
    const raw = exact!.top_logprobs.find(({ bytes }) => bytes.join() === edited!.bytes.join())!;
    expect(edited!.logprob).toBeCloseTo(raw.logprob, 4);
  });

  it('has a choice of its own when it is built per request', async () => {
    let built = 0;
    registerLogitsProcessor('counts', () => {
      built += 1;
      let calls = 0;
      return (_: Int32Array, logits: Float32Array) => {
        calls += 1;
        logits.fill(-Infinity)[64 + calls] = 0;
      };
    });
    const answer = await runtime.createCompletion(
      ask(STORY, {
        n: 3,
        temperature: 1,
        max_tokens: 3,
        return_token_ids: true,
        logits_processors: ['counts'],
      }),
    );
    expect(built).toBe(3);
    for (const choice of answer.choices) expect(choice.token_ids).toEqual([65, 66, 67]);
  });

  it('is built with args, kwargs and inference_xargs', async () => {
    const given: unknown[] = [];
    registerLogitsProcessor('only', (options) => {
      given.push(options);
      return only(options.args[0] as number);
    });
    const processor = { qualname: 'only', args: [90], kwargs: { why: 'test' } };
    expect(
      await tokens({ max_tokens: 2, logits_processors: [processor], inference_xargs: { a: 1, b: ['x', 2] } }),
    ).toEqual([90, 90]);
    expect(given).toEqual([
      { args: [90], kwargs: { why: 'test' }, inferenceXargs: { a: 1, b: ['x', 2] }, vocabSize: VOCABULARY },
    ]);
    registerLogitsProcessor('xargs', ({ inferenceXargs }) => only(inferenceXargs['token'] as number));
    expect(
      await tokens({ max_tokens: 2, logits_processors: ['xargs'], inference_xargs: { token: 91 } }),
    ).toEqual([91, 91]);
  });

  it('of an unknown name is an error that names the closest', async () => {
    registerLogitsProcessor('my.known.Processor', () => only(65));
    for (const item of ['my.known.Procesor', { qualname: 'my.known.Procesor' }])
      await expect(tokens({ logits_processors: ['my.known.Processor', item] })).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        param: 'logits_processors.1',
        message: expect.stringContaining('like "my.known.Processor"'),
      });
  });

  it.each<[string, LogitsProcessor | (() => unknown), RegExp]>([
    [
      'throws',
      () => {
        throw new RangeError('my own fault');
      },
      /logits_processors\.0: my own fault/,
    ],
    [
      'throws what cannot be shown',
      () => {
        throw Object.create(null);
      },
      /cannot be shown/,
    ],
    ['returns a list', () => [1, 2], /a Float32Array of 1024 logits back, got \[object Array\]/],
    ['returns a promise', async () => {}, /got \[object Promise\]/],
    ['returns a short row', () => new Float32Array(5), /got a Float32Array of 5/],
    [
      'returns a row that lies about its length',
      () => Object.defineProperty(new Float32Array(5), 'length', { value: VOCABULARY }),
      /got a Float32Array of 5/,
    ],
    [
      'gives its row away',
      (_: Int32Array, logits: Float32Array) =>
        void structuredClone(logits.buffer, { transfer: [logits.buffer as ArrayBuffer] }),
      /got a Float32Array of 0/,
    ],
    ['leaves NaN', (_: Int32Array, logits: Float32Array) => void logits.fill(Number.NaN, 3, 4), /NaN/],
  ])('that %s fails its own request only', async (_, processor, message) => {
    const [failed, healthy, hooked] = await Promise.allSettled([
      tokens({ logits_processors: [processor as LogitsProcessor] }),
      tokens({}),
      tokens({ logits_processors: [only(65)] }),
    ]);
    expect(failed).toMatchObject({
      reason: {
        code: 'INVALID_REQUEST',
        message: expect.stringMatching(message),
        param: 'logits_processors',
      },
    });
    expect(healthy).toEqual({ status: 'fulfilled', value: await tokens({}) });
    expect(hooked).toEqual({ status: 'fulfilled', value: new Array(8).fill(65) });
    expect(runtime.stats()).toMatchObject({ running: 0, waiting: 0 });
  });

  it('that forbids everything ends with NO_ALLOWED_TOKEN', async () => {
    await expect(
      tokens({ logits_processors: [(_: Int32Array, logits: Float32Array) => void logits.fill(-Infinity)] }),
    ).rejects.toMatchObject({
      code: 'NO_ALLOWED_TOKEN',
    });
  });

  it('can give rows away between tokens', async () => {
    const kept: ArrayBuffer[] = [];
    const processor: LogitsProcessor = (_: Int32Array, logits: Float32Array) => {
      const buffer = logits.buffer as ArrayBuffer;
      setImmediate(() => {
        if (buffer.byteLength > 0) kept.push(structuredClone(buffer, { transfer: [buffer] })); // it may be that of two rows
      });
    };
    expect(await tokens({ logits_processors: [processor] })).toEqual(await tokens({}));
    expect(kept.length).toBeGreaterThan(0);
  });

  it('is registered with a name and a function', () => {
    expect(() => registerLogitsProcessor('', () => only(1))).toThrow(
      expect.objectContaining({ code: 'INVALID_REQUEST' }),
    );
    expect(() => registerLogitsProcessor('x', 3 as never)).toThrow(
      expect.objectContaining({ param: 'factory' }),
    );
  });

  it('whose factory fails is an error before anything runs', async () => {
    registerLogitsProcessor('broken', () => {
      throw new Error('no such word list');
    });
    registerLogitsProcessor('nothing', () => undefined as never);
    const steps = runtime.stats().steps;
    await expect(tokens({ logits_processors: ['broken'] })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: /no such word list/,
    });
    await expect(tokens({ logits_processors: ['nothing'] })).rejects.toMatchObject({
      message: /made no function/,
    });
    expect(runtime.stats().steps).toBe(steps);
  });
});
