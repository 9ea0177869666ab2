/** Adapters of requests and of names, from GGUF files and PEFT folders, on the embedded model. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { readGgufAdapter, writeGgufAdapter } from '../../src/models/lora/gguf-adapter.ts';
import { EMBEDDED_MODEL } from '../../src/models/named-models.ts';
import type { Adapter, ChatCompletion, RuntimeOptions } from '../../src/protocol/index.ts';
import { openTrainer } from '../../src/rl/trainer.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { randomAdapter } from '../rl/random-adapter.ts';
import { normals, writeTinyModel } from '../rl/tiny-model.ts';

const root = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-request-adapters-'));
const RANK = 8;
const folder = (i: number): string => path.join(root, String(i));
const gguf = (i: number): string => path.join(folder(i), 'adapter.gguf');
const mixed = path.join(root, 'mixed.gguf');
const question = {
  messages: [{ role: 'user', content: 'Tell me a story.' }],
  temperature: 0,
  max_tokens: 12,
  logprobs: true,
  return_token_ids: true,
  stream: false,
} as const;
const OPTIONS: RuntimeOptions = {
  gpu: false,
  threads: 1,
  contextSize: 256,
  models: {
    plain: EMBEDDED_MODEL,
    first: { path: 'plain', adapters: [{ file: gguf(1) }] },
    both: {
      path: 'plain',
      adapters: [
        { model: 'first', scale: 0.5 },
        { file: folder(2), scale: 2 },
      ],
    },
  },
};
let runtime: Runtime;

const ask = (adapters: readonly Adapter[] | undefined, more: object = {}): Promise<ChatCompletion> =>
  runtime.createCompletion({ ...question, adapters, ...more });
const ids = ({ choices }: ChatCompletion): readonly number[] => choices[0]!.token_ids!;
const logprobs = ({ choices }: ChatCompletion): number[] =>
  choices[0]!.logprobs!.content!.map(({ logprob }) => logprob);

function expectSame(one: ChatCompletion, other: ChatCompletion): void {
  expect(ids(one)).toEqual(ids(other));
  for (const [i, logprob] of logprobs(one).entries())
    expect(Math.abs(logprob - logprobs(other)[i]!)).toBeLessThan(1e-3);
}

/** A copy of the first PEFT folder with another configuration. */
function withConfig(name: string, change: Record<string, unknown>): string {
  const target = path.join(root, name);
  fs.cpSync(folder(1), target, { recursive: true });
  const file = path.join(target, 'adapter_config.json');
  fs.writeFileSync(file, JSON.stringify({ ...JSON.parse(fs.readFileSync(file, 'utf8')), ...change }));
  return target;
}

/** One adapter that computes the sum of the first two, multiplied by these scales. */
async function writeSum(scales: readonly [number, number]): Promise<void> {
  const parts = await Promise.all([1, 2].map((i) => readGgufAdapter(gguf(i))));
  const weights = Object.fromEntries(
    Object.keys(parts[0]!.weights).map((name) => {
      const [one, two] = parts.map((part) => part.weights[name]!) as [never, never] as unknown as {
        a: Float32Array;
        b: Float32Array;
      }[];
      const a = Float32Array.from([...one!.a, ...two!.a]);
      const rows = one!.b.length / RANK;
      const b = new Float32Array(2 * RANK * rows);
      for (let row = 0; row < rows; row++)
        for (let i = 0; i < RANK; i++) {
          b[row * 2 * RANK + i] = 2 * scales[0] * one!.b[row * RANK + i]!; // the rank is twice as large
          b[row * 2 * RANK + RANK + i] = 2 * scales[1] * two!.b[row * RANK + i]!;
        }
      return [name, { a, b }];
    }),
  );
  fs.writeFileSync(mixed, Buffer.concat(writeGgufAdapter({ ...parts[0]!, rank: 2 * RANK, weights })));
}

beforeAll(async () => {
  const normal = normals(3);
  await using trainer = await openTrainer({ model: EMBEDDED_MODEL, rank: RANK, gpu: false, threads: 1 });
  for (const i of [1, 2, 3]) {
    await trainer.loadAdapter(randomAdapter(trainer, normal));
    await trainer.save(folder(i));
  }
  await writeSum([0.5, 2]);
  runtime = await createRuntime(OPTIONS);
});
afterAll(async () => {
  await runtime.close();
  fs.rmSync(root, { recursive: true });
});

describe('adapters of a request', () => {
  it('are computed the same from a GGUF file and a PEFT folder, and free their memory', async () => {
    const plain = await ask([]);
    const [one, peft] = [await ask([{ file: gguf(1) }]), await ask([{ file: folder(1), scale: 1 }])];
    expect(ids(one)).not.toEqual(ids(plain));
    expectSame(peft, one);
    expect(ids(await ask([{ file: gguf(1), scale: 0 }]))).toEqual(ids(plain));
    expect(ids(await ask([{ file: gguf(1), scale: -1 }]))).not.toEqual(ids(one));
    expect(one.system_fingerprint).toMatch(/-lora-[0-9a-f]{16}$/);
    await vi.waitFor(() => expect(runtime.loaded()).toMatchObject([{ memory: { adapters: 0 } }]));
  });

  it('mix by their scales, in a request and by a name, on one loaded model', async () => {
    const sum = await ask([{ file: mixed }]);
    expectSame(
      await ask([
        { file: gguf(1), scale: 0.5 },
        { file: gguf(2), scale: 2 },
      ]),
      sum,
    );
    expectSame(await ask(undefined, { model: 'both' }), sum);
    expectSame(
      await ask(
        [
          { file: gguf(2), scale: 2 },
          { model: 'first', scale: -0.5 },
        ],
        { model: 'first' },
      ),
      sum,
    );
    const loaded = runtime.loaded();
    expect(loaded).toHaveLength(1);
    expect(loaded[0]!.memory!.adapters).toBeGreaterThan(0); // those of the names stay
  });

  it('share cached prompts within their mix only', async () => {
    const long = [{ role: 'user', content: 'Tell me a story. '.repeat(20) }];
    const cached = async (adapters: Adapter[]): Promise<number> =>
      (await ask(adapters, { max_tokens: 1, messages: long, cache_salt: 'mixes' })).usage!
        .prompt_tokens_details!.cached_tokens!;
    const two = [{ file: gguf(1) }, { file: gguf(2) }];
    expect(await cached(two)).toBe(0);
    expect(await cached([])).toBe(0);
    expect(await cached([{ file: gguf(1) }])).toBe(0);
    expect(await cached([{ file: gguf(1) }, { file: gguf(2), scale: 0.5 }])).toBe(0);
    expect(await cached(two.toReversed())).toBeGreaterThan(0); // also after it was freed
  });

  it('give the tokens in company that they give alone', async () => {
    const mixes: Adapter[][] = [
      [],
      [{ file: gguf(1) }],
      [{ file: gguf(2) }, { file: gguf(3) }],
      [{ file: gguf(3), scale: 0.7 }],
    ];
    const alone: ChatCompletion[] = [];
    for (const mix of mixes) alone.push(await ask(mix, { cache_salt: 'alone' }));
    const together = await Promise.all(mixes.map((mix) => ask(mix, { cache_salt: 'together' })));
    for (const [i, one] of together.entries()) expect(ids(one)).toEqual(ids(alone[i]!));
  });
});

describe('a PEFT folder', () => {
  it('is scaled as its configuration says', async () => {
    const one = await ask([{ file: folder(1) }]);
    const scale = 16 / RANK;
    const stabilized = withConfig('rslora', { use_rslora: true, lora_alpha: scale * Math.sqrt(RANK) });
    expectSame(await ask([{ file: stabilized }]), one);
    const patterned = withConfig('patterns', {
      lora_alpha: 1,
      r: 99,
      rank_pattern: { '.*_proj': RANK },
      alpha_pattern: { 'self_attn\\..*': 16, 'mlp.(up|gate|down)_proj': 16 },
    });
    expectSame(await ask([{ file: patterned }]), one);
  });

  it.each([
    ['use_dora', { use_dora: true }, 'UNSUPPORTED', /use_dora: DoRA is not served/],
    ['lora_bias', { lora_bias: true }, 'UNSUPPORTED', /lora_bias/],
    ['pissa', { init_lora_weights: 'pissa_niter_4' }, 'UNSUPPORTED', /pissa_niter_4 changes the weights/],
    ['ia3', { peft_type: 'IA3' }, 'MODEL_INVALID', /peft_type: expected "LORA", got "IA3"/],
    [
      'rank',
      { r: 4 },
      'MODEL_INVALID',
      /lora_A.weight: expected a matrix of rank 4, as adapter_config.json says/,
    ],
    ['alpha', { lora_alpha: 'much' }, 'MODEL_INVALID', /lora_alpha: expected a number, got "much"/],
  ])('is refused for %s', async (name, change, code, message) => {
    const refused = ask([{ file: gguf(1) }, { file: withConfig(name, change) }]);
    await expect(refused).rejects.toMatchObject({ code, param: 'adapters.1.file' });
    await expect(refused).rejects.toThrow(message);
  });
});

describe('an adapter that cannot be used', () => {
  const bad = path.join(root, 'bad.gguf');
  const other = path.join(root, 'other.gguf');
  it.each([
    [
      'no file',
      async () => 'nowhere',
      'MODEL_NOT_FOUND',
      /expected a GGUF file, or a folder with adapter_config.json/,
    ],
    ['a folder without an adapter', async () => root, 'MODEL_NOT_FOUND', /expected a GGUF file/],
    [
      'a model',
      async () => EMBEDDED_MODEL,
      'MODEL_INVALID',
      /expected an adapter, got a file of the type model/,
    ],
    ['no GGUF', () => written('no'), 'MODEL_INVALID', /is not a GGUF file/],
    ['a cut file', () => written(fs.readFileSync(gguf(1)).subarray(0, 9000)), 'MODEL_INVALID', /truncated/],
    [
      'another architecture',
      () => tune('gemma3', 64),
      'MODEL_INVALID',
      /expected an adapter of a \w+ model, got one of a gemma3 model/,
    ],
    [
      'another size',
      () => tune(null, 64),
      'MODEL_INVALID',
      /expected the shape \d+ x 4 of rank 4 beside a weight of/,
    ],
  ])('is refused by its field: %s', async (_name, make, code, message) => {
    const refused = ask([{ file: await make() }]);
    await expect(refused).rejects.toMatchObject({ code, param: 'adapters.0.file' });
    await expect(refused).rejects.toThrow(message);
    expect(ids(await ask([]))).toHaveLength(12);
  });

  async function written(content: string | Uint8Array): Promise<string> {
    fs.writeFileSync(bad, content);
    return bad;
  }

  /** An adapter of another model: null is the embedded model's architecture. */
  async function tune(architecture: 'gemma3' | null, headSize: number): Promise<string> {
    const own = (await readGgufAdapter(gguf(1))).architecture as 'qwen3';
    await writeTinyModel(other, { architecture: architecture ?? own, type: 'f32', headSize });
    await using trainer = await openTrainer({ model: other, rank: 4, gpu: false, threads: 1 });
    await trainer.save(path.join(root, `other-${architecture}`));
    return path.join(root, `other-${architecture}`, 'adapter.gguf');
  }

  it('names the model of a request that has none', async () => {
    await expect(ask([{ model: 'plain' }])).rejects.toMatchObject({
      code: 'MODEL_NOT_FOUND',
      param: 'adapters.0.model',
    });
    await expect(ask([{}])).rejects.toMatchObject({ code: 'INVALID_REQUEST', param: 'adapters.0' });
    await expect(
      createRuntime({ models: { x: { path: 'y', adapters: [{ scale: 1 } as never] } } }),
    ).rejects.toMatchObject({ code: 'INVALID_REQUEST', param: 'models.x.adapters.0' });
  });

  it('has to fit into the budget of the runtime', async () => {
    const { weights, cache, compute } = runtime.loaded()[0]!.memory!;
    const budget = weights + cache + compute + 1000;
    await using small = await createRuntime({ ...OPTIONS, memory: { budget } });
    const refused = small.createCompletion({ ...question, adapters: [{ file: gguf(1) }] });
    await expect(refused).rejects.toMatchObject({ code: 'OUT_OF_MEMORY', param: 'adapters.0.file' });
    await expect(refused).rejects.toThrow(/takes \d+ MiB; models in use take \d+ MiB of a budget of \d+ MiB/);
  });
});

describe('an adapter with a name', () => {
  it('is a model and a part of mixes until it is unloaded', async () => {
    const { adapters } = runtime;
    const [one, two] = [await ask([{ file: gguf(1) }]), await ask([{ file: gguf(2) }])];
    expect(await adapters.load({ name: 'mine', path: gguf(1) })).toEqual({
      name: 'mine',
      path: gguf(1),
      base: null,
    });
    expect(ids(await ask([], { model: 'mine' }))).toEqual(ids(one));
    expect(ids(await ask([{ model: 'mine' }]))).toEqual(ids(one));
    await expect(adapters.load({ name: 'mine', path: gguf(2) })).rejects.toMatchObject({
      code: 'CONFLICT',
      param: 'name',
    });
    await adapters.load({ name: 'mine', path: folder(2), base: 'plain', loadInPlace: true });
    expectSame(await ask([], { model: 'mine' }), two);
    expect(adapters.list()).toEqual([{ name: 'mine', path: folder(2), base: 'plain' }]);
    expect([await adapters.unload('mine'), await adapters.unload('mine')]).toEqual([true, false]);
    await expect(ask([], { model: 'mine' })).rejects.toMatchObject({ code: 'MODEL_NOT_FOUND' });
  });

  it.each([
    [{ name: 'plain', path: gguf(1) }, 'CONFLICT', 'name'],
    [{ name: 'x', path: 'nowhere' }, 'MODEL_NOT_FOUND', 'path'],
    [{ name: 'x', path: EMBEDDED_MODEL }, 'MODEL_INVALID', 'path'],
    [{ name: 'x', path: gguf(1), base: 'nothing' }, 'MODEL_NOT_FOUND', 'base'],
    [{ name: '', path: gguf(1) }, 'INVALID_REQUEST', 'name'],
  ])('is refused: %j', async (request, code, param) => {
    await expect(runtime.adapters.load(request)).rejects.toMatchObject({ code, param });
    expect(runtime.adapters.list()).toEqual([]);
  });
});
