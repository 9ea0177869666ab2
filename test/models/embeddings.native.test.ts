/** Embeddings of small random models, beside a forward pass in plain arithmetic and beside the engine's own pooling. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { OpenAIEmbeddings } from '@langchain/openai';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadGguf } from '../../src/models/formats/index.ts';
import type { EmbeddingRequest } from '../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { connect, createHandler, serve } from '../../src/serve/http/index.ts';
import { writeTinyModel } from '../rl/tiny-model.ts';
import { bertStates, type TinyBert, writeTinyBert } from './tiny-bert.ts';

const root = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-embeddings-'));
const file = (name: string): string => path.join(root, `${name}.gguf`);
const MODELS = {
  mean: file('mean'),
  cls: file('cls'),
  rank: file('rank'),
  last: file('last'),
  chat: file('chat'),
};
const TEXTS = ['ab', 'b c d', 'x', 'hello world', 'the quick brown fox'];
let weights: TinyBert;
let runtime: Runtime;

beforeAll(async () => {
  weights = writeTinyBert(MODELS.mean, 1);
  writeTinyBert(MODELS.cls, 2);
  writeTinyBert(MODELS.rank, 4);
  const shape = { architecture: 'qwen3', type: 'q8_0', vocabularySize: 320 } as const;
  await writeTinyModel(MODELS.last, { ...shape, pooling: 3 });
  await writeTinyModel(MODELS.chat, shape);
  runtime = await createRuntime({ gpu: false, threads: 1, model: MODELS.mean, models: MODELS });
});
afterAll(async () => {
  await runtime.close();
  fs.rmSync(root, { recursive: true });
});

async function embed(
  input: EmbeddingRequest['input'],
  more: Partial<EmbeddingRequest> = {},
): Promise<number[][]> {
  const { data } = await runtime.createEmbeddings({ input, ...more });
  expect(data.map(({ index }) => index)).toEqual(data.map((_, i) => i));
  return data.map(({ embedding }) => embedding);
}

function cosine(one: ArrayLike<number>, other: ArrayLike<number>): number {
  const dot = (a: ArrayLike<number>, b: ArrayLike<number>): number =>
    Array.from(a).reduce((sum, value, i) => sum + value * b[i]!, 0);
  return dot(one, other) / Math.sqrt(dot(one, one) * dot(other, other));
}

/** The tokens that the model gets for a text. */
async function idsOf(model: keyof typeof MODELS, text: string): Promise<number[]> {
  const loaded = await loadGguf({ path: MODELS[model], gpu: false });
  const ids = await loaded.tokenizer.encode(text, { addSpecial: true, parseSpecial: false });
  loaded.close();
  return Array.from(ids);
}

const norm = (vector: readonly number[]): number => Math.hypot(...vector);

describe('the vectors of an encoder', () => {
  it.each([
    [
      'mean',
      (states: number[][]) => states[0]!.map((_, i) => states.reduce((sum, state) => sum + state[i]!, 0)),
    ],
    ['cls', (states: number[][]) => states[0]!],
  ] as const)('%s: are those of plain arithmetic, alone and in company', async (model, pool) => {
    const together = await embed(TEXTS, { model });
    for (const [i, text] of TEXTS.entries()) {
      const ids = await idsOf(model, text);
      expect([ids[0], ids.at(-1)]).toEqual([2, 3]);
      expect(cosine(together[i]!, pool(bertStates(weights, ids)))).toBeGreaterThan(0.9999);
      expect(cosine((await embed(text, { model }))[0]!, together[i]!)).toBeGreaterThan(0.999999);
      expect(norm(together[i]!)).toBeCloseTo(1, 5);
    }
  });
});

describe('the vector of the last token', () => {
  it("is what the engine's own pooling gives, also for a text of several passes", async () => {
    const model = await loadGguf({ path: MODELS.last, gpu: false });
    const lengths = [1, 7, 700, 3];
    const tokens = Int32Array.from({ length: 711 }, (_, i) => (i * 53) % 300);
    const options = { batchTokens: 1024, maxSequences: 8, threads: 1 };
    const vectors: Float32Array[] = [];
    for (const isLast of [true, false]) {
      const embedder = await model.createEmbedder({ ...options, isLast });
      vectors.push(await embedder.embed(tokens, Int32Array.from(lengths)));
      expect(vectors.at(-1)!.length).toBe(lengths.length * embedder.size);
      await embedder.close();
    }
    const size = vectors[0]!.length / lengths.length;
    for (let i = 0; i < lengths.length; i++) {
      const [own, pooled] = vectors.map((rows) => rows.subarray(i * size, (i + 1) * size));
      expect(cosine(own!, pooled!)).toBeGreaterThan(0.9999);
    }
    model.close();
  });

  it('is the same for a text and its ids, and for many texts in few batches', async () => {
    const many = Array.from({ length: 100 }, (_, i) => TEXTS[i % TEXTS.length]!);
    const vectors = await embed(many, { model: 'last' });
    for (const [i, vector] of vectors.entries())
      expect(cosine(vector, vectors[i % TEXTS.length]!)).toBeGreaterThan(0.9999);
    const ids = await idsOf('last', 'hello world');
    expect(cosine((await embed(ids, { model: 'last' }))[0]!, vectors[3]!)).toBeGreaterThan(0.9999);
  });
});

describe('a request for embeddings', () => {
  it('says how long vectors are, and in what form they come', async () => {
    const [whole] = await embed('ab');
    const [cut] = await embed('ab', { dimensions: 8 });
    expect(cut).toHaveLength(8);
    expect(norm(cut!)).toBeCloseTo(1, 5);
    expect(cosine(cut!, whole!.slice(0, 8))).toBeGreaterThan(0.999999);
    expect(norm((await embed('ab', { normalize: false }))[0]!)).toBeGreaterThan(2);
    const { data, usage, model } = await runtime.createEmbeddings({
      input: ['ab', 'b'],
      encoding_format: 'base64',
    });
    const bytes = Buffer.from(data[0]!.embedding as unknown as string, 'base64');
    expect(Array.from(new Float32Array(Uint8Array.from(bytes).buffer))).toEqual(whole);
    expect({ usage, model }).toEqual({ usage: { prompt_tokens: 7, total_tokens: 7 }, model: MODELS.mean });
  });

  it('cuts long texts where it is asked to, and refuses them else', async () => {
    const long = 'abc '.repeat(60);
    await expect(embed(['a', long])).rejects.toMatchObject({ code: 'CONTEXT_OVERFLOW', param: 'input.1' });
    expect(await embed(long, { truncate_prompt_tokens: -1 })).toHaveLength(1);
    const [cut] = await embed('abc', { truncate_prompt_tokens: 4 });
    expect(cosine(cut!, (await embed('ab'))[0]!)).toBeGreaterThan(0.9999); // [CLS] a b [SEP]
  });

  it.each([
    [{ input: [] }, 'INVALID_REQUEST', 'input'],
    [{ input: ['a', 5] }, 'INVALID_REQUEST', 'input.1'],
    [{ input: [[1], []] }, 'INVALID_REQUEST', 'input.1'],
    [{ input: [1, 999] }, 'INVALID_REQUEST', 'input.1'],
    [{ input: '', add_special_tokens: false }, 'INVALID_REQUEST', 'input'],
    [{ input: 'a', dimensions: 65 }, 'INVALID_REQUEST', 'dimensions'],
    [{ input: 'a', encoding_format: 'hex' }, 'INVALID_REQUEST', 'encoding_format'],
    [{ input: 'a', truncate_prompt_tokens: 0 }, 'INVALID_REQUEST', 'truncate_prompt_tokens'],
    [{ input: 'a', model: 'chat' }, 'UNSUPPORTED', 'model'],
    [{ input: 'a', model: 'rank' }, 'UNSUPPORTED', 'model'],
    [{ input: 'a', model: 'none' }, 'MODEL_NOT_FOUND', 'model'],
  ])('is refused by its field: %j', async (request, code, param) => {
    await expect(runtime.createEmbeddings(request as EmbeddingRequest)).rejects.toMatchObject({
      code,
      param,
    });
  });

  it('is no chat, and its model leaves when it is not used', async () => {
    const messages = [{ role: 'user', content: 'a' }];
    await expect(runtime.createCompletion({ messages, model: 'cls' })).rejects.toMatchObject({
      code: 'UNSUPPORTED',
      param: 'model',
    });
    expect(await runtime.unload('cls')).toBe(true);
    expect(await embed('a', { model: 'cls' })).toHaveLength(1);
  });

  it('ends when it is aborted, and when the runtime is closed', async () => {
    const input = Array.from({ length: 2000 }, () => 'hello');
    const early = AbortSignal.abort();
    await expect(runtime.createEmbeddings({ input }, { signal: early })).rejects.toMatchObject({
      code: 'ABORTED',
    });
    const controller = new AbortController();
    const running = runtime.createEmbeddings({ input, model: 'last' }, { signal: controller.signal });
    setImmediate(() => controller.abort());
    await expect(running).rejects.toMatchObject({ code: 'ABORTED' });
    const other = await createRuntime({ gpu: false, threads: 1, model: MODELS.last });
    await other.createEmbeddings({ input: 'a' });
    const late = other.createEmbeddings({ input });
    setImmediate(() => void other.close());
    await expect(late).rejects.toMatchObject({ code: 'CLOSED' });
  });
});

describe('clients of embeddings', () => {
  it("OpenAI's and LangChain's work as they are, in process and over HTTP; so does connect", async () => {
    const expected = await embed(TEXTS);
    const server = await serve(runtime, { port: 0 });
    const baseURL = `${server.url}/v1`;
    const own = { apiKey: 'none', baseURL };
    const vectors = [
      (await new OpenAI(own).embeddings.create({ model: 'mean', input: TEXTS })).data.map(
        ({ embedding }) => embedding,
      ),
      (
        await new OpenAI({ ...own, fetch: runtime.fetch }).embeddings.create({
          model: 'mean',
          input: TEXTS,
          encoding_format: 'float',
        })
      ).data.map(({ embedding }) => embedding),
      await new OpenAIEmbeddings({
        model: 'mean',
        apiKey: 'none',
        configuration: { baseURL },
      }).embedDocuments(TEXTS),
      (await connect({ baseUrl: server.url }).createEmbeddings!({ input: TEXTS })).data.map(
        ({ embedding }) => embedding,
      ),
    ];
    for (const rows of vectors)
      for (const [i, row] of rows.entries()) expect(cosine(row, expected[i]!)).toBeGreaterThan(0.999999);
    await server.close();
  });

  it('are held to the limits of the server', async () => {
    const handler = createHandler(runtime, { maxInputs: 2 });
    const body = JSON.stringify({ input: ['a', 'b', 'c'] });
    const response = await handler(new Request('http://localhost/v1/embeddings', { method: 'POST', body }));
    expect(response.status).toBe(413);
  });
});
