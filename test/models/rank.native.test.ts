/** Rankings of small random models: beside llama.cpp's server on the same files, plain arithmetic, and Qwen3-Reranker's published formula. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadGguf } from '../../src/models/formats/index.ts';
import type { ClassifyRequest, RerankRequest, ScoreRequest } from '../../src/protocol/index.ts';
import type { Service } from '../../src/protocol/service/service.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { connect, createHandler, createPool } from '../../src/serve/http/index.ts';
import { bertHead } from './tiny-bert.ts';
import { PROMPT, type TinyRankers, writeTinyRankers } from './tiny-rankers.ts';

type ServerCase = { query: string; documents: string[]; scores: number[]; tokens: number };

const root = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-rank-'));
const golden: Record<'cross' | 'qwen', ServerCase[]> = JSON.parse(
  fs.readFileSync(new URL('../golden/rank/llama-server.json', import.meta.url), 'utf8'),
);
let tiny: TinyRankers;
let runtime: Runtime;

beforeAll(async () => {
  tiny = await writeTinyRankers(root);
  const exact = { path: tiny.files.cross, fusedAttention: false };
  const models = { ...tiny.files, exact };
  runtime = await createRuntime({ gpu: false, threads: 1, home: root, models });
});
afterAll(async () => {
  await runtime.close();
  fs.rmSync(root, { recursive: true });
});

/** Scores in the order of the documents. */
async function rerank(request: RerankRequest, service: Service = runtime): Promise<number[]> {
  const { results } = await service.rerank!(request);
  expect(results.length).toBe(request.documents.length);
  return results.toSorted((a, b) => a.index - b.index).map(({ relevance_score }) => relevance_score);
}

async function score(model: string, text_1: ScoreRequest['text_1'], text_2: ScoreRequest['text_2']) {
  return (await runtime.score({ model, text_1, text_2 })).data.map((pair) => pair.score);
}

function expectClose(found: readonly number[], expected: readonly number[], tolerance = 1e-4): void {
  expect(found.length).toBe(expected.length);
  for (const [i, value] of found.entries())
    expect(Math.abs(value - expected[i]!), `${i}: ${value} for ${expected[i]}`).toBeLessThan(tolerance);
}

describe("scores are those of llama.cpp's server", () => {
  it.each([
    // Its gelu is read from a table with inputs of 16 bits, so the last bits of a sum, which depend on the processor, may shift it.
    ['a cross encoder', 'cross', golden.cross, 1e-3],
    ["Qwen3-Reranker's kind with a head", 'qwen', golden.qwen, 1e-4],
    ['the same weights without one, by the probability of yes', 'plain', golden.qwen, 1e-4],
  ] as const)('%s', async (_, model, cases, tolerance) => {
    for (const { query, documents, scores, tokens } of cases) {
      expectClose(await rerank({ model, query, documents }), scores, tolerance);
      const { usage, results } = await runtime.rerank({ model, query, documents });
      expect(usage).toEqual({ prompt_tokens: tokens, total_tokens: tokens });
      const best = results.map(({ relevance_score }) => relevance_score);
      expect(best).toEqual(best.toSorted((a, b) => b - a));
    }
  });
});

describe('a score', () => {
  it('of a cross encoder is that of plain arithmetic', async () => {
    const loaded = await loadGguf({ path: tiny.files.cross, gpu: false });
    const { tokenizer } = loaded;
    const plain = { addSpecial: false, parseSpecial: false };
    for (const [query, document] of [
      ['ab', 'x y'],
      ['hello', 'world'],
    ] as const) {
      const ids = [
        2,
        ...(await tokenizer.encode(query, plain)),
        3,
        ...(await tokenizer.encode(document, plain)),
      ];
      const [expected] = bertHead(tiny.cross, ids);
      for (const model of ['cross', 'exact'])
        expectClose(await score(model, query, document), [expected!], 5e-3); // a gelu by table
      const request = { model: 'cross', text_1: query, text_2: document, use_activation: true };
      const [activated] = (await runtime.score(request)).data;
      const [raw] = await score('cross', query, document);
      expect(activated!.score).toBeCloseTo(1 / (1 + Math.exp(-raw!)), 6);
    }
    loaded.close();
  });

  it('of a model that answers is the softmax of yes and no behind the published prompt', async () => {
    const [query, document, instruction] = ['Peru', 'Lima', 'Find a capital.'];
    const told = PROMPT.replace(/<Instruct>: .*/, `<Instruct>: ${instruction}`);
    for (const [template, more] of [
      [PROMPT, {}],
      [told, { instruction }],
    ] as const) {
      const prompt = template.replace('{query}', query).replace('{document}', document);
      const request = { model: 'plain', prompt, max_tokens: 1, logprobs: -1, temperature: 1 };
      const { choices } = await runtime.createTextCompletion(request);
      const { yes, no } = choices[0]!.logprobs!.top_logprobs[0]!;
      const expected = Math.exp(yes!) / (Math.exp(yes!) + Math.exp(no!));
      const [found] = (await runtime.score({ model: 'plain', text_1: query, text_2: document, ...more }))
        .data;
      expectClose([found!.score], [expected], 1e-5);
    }
  });

  it('of embeddings is the cosine of their angle, with any number of texts', async () => {
    const texts = ['a b', 'hello', 'x'];
    const { data } = await runtime.createEmbeddings({ model: 'vectors', input: texts });
    const cosine = (i: number, j: number): number =>
      data[i]!.embedding.reduce((sum, value, at) => sum + value * data[j]!.embedding[at]!, 0);
    expectClose(await score('vectors', texts[0]!, texts), [1, cosine(0, 1), cosine(0, 2)], 1e-5);
    expectClose(await score('vectors', texts, texts.toReversed()), [cosine(0, 2), 1, cosine(2, 0)], 1e-5);
    const documents = texts.slice(1);
    expectClose(await rerank({ model: 'vectors', query: texts[0]!, documents }), [
      cosine(0, 1),
      cosine(0, 2),
    ]);
  });

  it.each([
    ['cross', 1e-3], // the engine's fused attention adds up in 16 bits, in another order in a longer batch
    ['exact', 1e-5],
    ['qwen', 1e-4],
    ['plain', 1e-4],
  ])('of %s is the same in company and alone', async (model, tolerance) => {
    const documents = Array.from({ length: 40 }, (_, i) => `document ${'abc '.repeat(i % 9)}`);
    const together = await rerank({ model, query: 'some', documents });
    for (const i of [0, 5, 39])
      expectClose(await score(model, 'some', documents[i]!), [together[i]!], tolerance);
  });
});

describe('an answer', () => {
  it('has the best documents first, as many as are asked for, with their texts', async () => {
    const documents = ['a b c', { text: 'x' }, 'the quick brown fox'];
    const request = { model: 'cross', query: 'ab', documents };
    const { results, model, id } = await runtime.rerank({ ...request, top_n: 2 });
    expect({ model, id }).toEqual({ model: 'cross', id: expect.stringMatching(/^rerank-/) });
    expect(results.map(({ index, document }) => [index, document!.text])).toEqual([
      [1, 'x'],
      [2, 'the quick brown fox'],
    ]);
    const bare = await runtime.rerank({ ...request, top_n: 0, return_documents: false });
    expect(bare.results.length).toBe(3);
    for (const result of bare.results) expect(Object.keys(result)).toEqual(['index', 'relevance_score']);
  });

  it('labels texts with probabilities, as plain arithmetic does', async () => {
    const input = ['ab', 'hello world'];
    const { data, usage, object } = await runtime.classify({ model: 'labels', input });
    const raw = await runtime.classify({ model: 'labels', input, use_activation: false });
    expect({ object, usage }).toEqual({ object: 'list', usage: { prompt_tokens: 16, total_tokens: 16 } });
    const loaded = await loadGguf({ path: tiny.files.labels, gpu: false });
    const { tokenizer } = loaded;
    for (const [i, text] of input.entries()) {
      const ids = await tokenizer.encode(text, { addSpecial: true, parseSpecial: false });
      const numbers = bertHead(tiny.labels, Array.from(ids));
      expectClose(raw.data[i]!.probs, numbers, 5e-3);
      const exps = raw.data[i]!.probs.map(Math.exp);
      const total = exps.reduce((sum, value) => sum + value, 0);
      const probs = exps.map((value) => value / total);
      const label = ['good', 'bad', 'odd'][probs.indexOf(Math.max(...probs))]!;
      expect(data[i]).toEqual({ index: i, label, probs: expect.any(Array), num_classes: 3 });
      expectClose(data[i]!.probs, probs, 1e-6);
    }
    loaded.close();
    const [yes] = (await runtime.classify({ model: 'qwen', input: 'ab' })).data;
    expect(yes!.probs[0]! + yes!.probs[1]!).toBeCloseTo(1, 5); // the engine's own softmax
  });

  it('of a long document is refused, or that of its beginning', async () => {
    const long = 'abc '.repeat(60);
    for (const model of ['cross', 'vectors', 'labels'] as const) {
      const asked =
        model === 'labels'
          ? runtime.classify({ model, input: ['a', long] })
          : runtime.rerank({ model, query: 'ab', documents: ['a', long] });
      const param = model === 'labels' ? 'input.1' : 'documents.1';
      await expect(asked).rejects.toMatchObject({ code: 'CONTEXT_OVERFLOW', param });
    }
    const cut = { model: 'cross', text_1: 'ab', truncate_prompt_tokens: -1 };
    const { usage, data } = await runtime.score({ ...cut, text_2: long });
    expect(usage.prompt_tokens).toBe(64);
    const beginning = 'abc '.repeat(20); // four tokens stand before it
    expectClose([data[0]!.score], await score('cross', 'ab', beginning), 1e-6);
    await expect(runtime.score({ ...cut, text_1: long, text_2: 'a' })).rejects.toMatchObject({
      code: 'CONTEXT_OVERFLOW',
      param: 'text_1',
    });
    const emoji = await runtime.score({
      ...cut,
      model: 'plain',
      text_2: '🙂🙂🙂',
      truncate_prompt_tokens: 320,
    });
    expect(emoji.usage.prompt_tokens).toBeLessThanOrEqual(320);
  });
});

describe('a request is refused by its field', () => {
  const documents = ['a'];
  it.each([
    [{ documents }, 'INVALID_REQUEST', 'query'],
    [{ query: 'a', documents: [] }, 'INVALID_REQUEST', 'documents'],
    [{ query: 'a', documents: ['a', 5] }, 'INVALID_REQUEST', 'documents.1'],
    [{ query: 'a', documents: [{ title: 'a' }] }, 'INVALID_REQUEST', 'documents.0.text'],
    [{ query: 'a', documents, top_n: -1 }, 'INVALID_REQUEST', 'top_n'],
    [{ query: 'a', documents, truncate_prompt_tokens: 0 }, 'INVALID_REQUEST', 'truncate_prompt_tokens'],
    [{ query: 'a', documents, topn: 1 }, 'INVALID_REQUEST', 'topn'],
    [{ query: 'a', documents, model: 'none' }, 'MODEL_NOT_FOUND', 'model'],
    [{ query: 'a', documents, model: 'test/golden/training/tiny-llama.gguf' }, 'UNSUPPORTED', 'model'],
    [{ query: 'a', documents, model: 'labels' }, 'UNSUPPORTED', 'model'],
    [{ query: 'a', documents, model: 'cross', instruction: 'x' }, 'UNSUPPORTED', 'instruction'],
    [{ query: 'a', documents, model: 'vectors', instruction: 'x' }, 'UNSUPPORTED', 'instruction'],
  ])('rerank %j', async (request, code, param) => {
    await expect(runtime.rerank(request as RerankRequest)).rejects.toMatchObject({ code, param });
  });

  it.each([
    [{ text_1: ['a', 'b'], text_2: ['a', 'b', 'c'] }, 'INVALID_REQUEST', 'text_2'],
    [{ text_1: [], text_2: 'a' }, 'INVALID_REQUEST', 'text_1'],
    [{ text_1: 'a' }, 'INVALID_REQUEST', 'text_2'],
  ])('score %j', async (request, code, param) => {
    await expect(runtime.score(request as ScoreRequest)).rejects.toMatchObject({ code, param });
  });

  it.each([
    [{ input: [1] }, 'INVALID_REQUEST', 'input.0'],
    [{ input: 'a', model: 'cross' }, 'UNSUPPORTED', 'model'],
    [{ input: 'a', model: 'plain' }, 'UNSUPPORTED', 'model'],
    [{ input: 'a', model: 'vectors' }, 'UNSUPPORTED', 'model'],
  ])('classify %j', async (request, code, param) => {
    await expect(runtime.classify(request as ClassifyRequest)).rejects.toMatchObject({ code, param });
  });

  it('by models that rank, of a chat and of embeddings', async () => {
    const messages = [{ role: 'user' as const, content: 'a' }];
    const refused = { code: 'UNSUPPORTED', param: 'model' };
    await expect(runtime.createCompletion({ model: 'qwen', messages })).rejects.toMatchObject(refused);
    await expect(runtime.createEmbeddings({ model: 'qwen', input: 'a' })).rejects.toMatchObject(refused);
  });

  it('ends when it is aborted', async () => {
    const many = Array.from({ length: 300 }, (_, i) => `text ${i}`);
    for (const model of ['cross', 'plain']) {
      const request = { model, query: 'a', documents: many };
      const early = runtime.rerank(request, { signal: AbortSignal.abort() });
      await expect(early).rejects.toMatchObject({ code: 'ABORTED' });
      const controller = new AbortController();
      const late = runtime.rerank(request, { signal: controller.signal });
      setImmediate(() => controller.abort());
      await expect(late).rejects.toMatchObject({ code: 'ABORTED' });
    }
    expect(runtime.stats()).toMatchObject({ running: 0, waiting: 0 });
  });
});

it('a model says what it is for', async () => {
  const found = await Promise.all(
    Object.keys(tiny.files).map(async (model) => (await runtime.modelCard(model))!.capabilities),
  );
  expect(found).toEqual([['rerank'], ['rerank'], ['rerank'], ['completion'], ['embedding']]);
  const listed = await runtime.fetch('http://in.process/v1/models');
  type Entry = { id: string; architecture: { output_modalities: string[] } };
  const { data } = (await listed.json()) as { data: Entry[] };
  const outputs = new Map(data.map(({ id, architecture }) => [id, architecture.output_modalities]));
  expect(Object.keys(tiny.files).map((model) => outputs.get(model))).toEqual([
    ['rerank'],
    ['rerank'],
    ['rerank'],
    ['text'],
    ['embeddings'],
  ]);
});

describe('every service', () => {
  const request = golden.qwen[0]!;
  const asked = { model: 'plain', query: request.query, documents: request.documents };

  it('ranks, scores and labels alike', async () => {
    const client = connect({ baseUrl: 'http://127.0.0.1', fetch: runtime.fetch });
    for (const service of [client, createPool([client])]) {
      expectClose(await rerank(asked, service), request.scores);
      const { data } = await service.score!({ model: 'cross', text_1: 'ab', text_2: ['x', 'ab'] });
      expectClose(
        data.map((pair) => pair.score),
        [golden.cross[0]!.scores[2]!, golden.cross[0]!.scores[4]!],
      );
      const labelled = await service.classify!({ model: 'labels', input: 'ab' });
      expect(labelled.data).toEqual((await runtime.classify({ model: 'labels', input: 'ab' })).data);
      await expect(service.rerank!({ ...asked, documents: [] })).rejects.toMatchObject({
        param: 'documents',
      });
    }
  });

  it('ranks in a process of its own', async () => {
    const options = { gpu: false, threads: 1, home: path.join(root, 'isolated'), isolate: true } as const;
    await using isolated = await createRuntime({ ...options, models: { cross: tiny.files.cross } });
    const { query, documents, scores } = golden.cross[0]!;
    expectClose(await rerank({ model: 'cross', query, documents }, isolated), scores);
  });

  it.each([
    ['/v1/rerank', asked],
    ['/v2/rerank', asked],
    ['/rerank', asked],
    ['/v1/score', { model: 'cross', text_1: 'a', text_2: ['b', 'c'] }],
    ['/score', { model: 'cross', text_1: 'a', text_2: ['b', 'c'] }],
    ['/v1/classify', { model: 'labels', input: ['a', 'b', 'c'] }],
    ['/classify', { model: 'labels', input: ['a', 'b', 'c'] }],
  ])('answers over HTTP at %s, within the limits of the server', async (at, body) => {
    const post = (handler: ReturnType<typeof createHandler>, sent: object) =>
      handler(new Request(`http://localhost${at}`, { method: 'POST', body: JSON.stringify(sent) }));
    const response = await post(createHandler(runtime, {}), { ...body, of_another_client: 1 });
    expect(response.status).toBe(200);
    const { usage, results, data } = (await response.json()) as {
      usage: { total_tokens: number };
      results?: unknown[];
      data?: unknown[];
    };
    expect(usage.total_tokens).toBeGreaterThan(4);
    expect((results ?? data)!.length).toBeGreaterThan(1);
    expect((await post(createHandler(runtime, { maxInputs: 1 }), body)).status).toBe(413);
    expect((await post(createHandler(runtime, {}), { ...body, model: 5 })).status).toBe(400);
  });

  it('answers rows of a batch', async () => {
    const rows = [
      { custom_id: 'a', url: '/v1/rerank', body: asked },
      { custom_id: 'b', url: '/v1/score', body: { model: 'cross', text_1: 'ab', text_2: 'x' } },
      { custom_id: 'c', url: '/v1/classify', body: { model: 'labels', input: 'ab' } },
      { custom_id: 'd', url: '/v1/rerank', body: asked },
    ];
    const found = new Map<string, { results: unknown; id: string }>();
    const run = runtime.batch(rows);
    for await (const { custom_id, response } of run) found.set(custom_id!, response!.body as never);
    expect(await run.done).toMatchObject({ completed: 4, failed: 0, shared: 1 });
    expect(found.get('d')!.results).toEqual(found.get('a')!.results);
    expect(found.get('d')!.id).not.toBe(found.get('a')!.id);
  });
});
