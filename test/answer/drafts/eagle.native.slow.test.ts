/** An EAGLE-3 file beside a model as a source of drafts: right or wrong, no answer changes. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Speculation } from '../../../src/protocol/index.ts';
import { CHECKPOINT_FILES, openTrainer } from '../../../src/rl/index.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { architectureFiles } from '../../architectures/files.ts';
import { randomAdapter } from '../../rl/random-adapter.ts';
import { normals } from '../../rl/tiny-model.ts';
import { answers, asked, rewritten } from './drafted.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-eagle-'));
let files: Record<string, string>;
beforeAll(() => {
  files = architectureFiles([
    'qwen3',
    'qwen35',
    'lfm2',
    'qwen2',
    'qwen3-output',
    'eagle3',
    'eagle3-output',
    'qwen35-mtp',
  ]);
}, 120_000);
afterAll(() => fs.rmSync(folder, { recursive: true }));

describe.each(['qwen3', 'qwen35', 'lfm2'])('%s', (name) => {
  it('answers the same with drafts that are wrong', { timeout: 60_000 }, async () => {
    const plain = await answers(files[name]!, false);
    const drafted = await answers(files[name]!, { method: 'draft', model: files['eagle3']!, maxTokens: 3 });
    expect(drafted.tokens).toEqual(plain.tokens);
    expect(drafted.draftedTokens).toBeGreaterThan(0);
  });
});

/**
 * A model that lets the token with the next id follow each, at temperature 0, and a file that knows by the state of a token which one
 * comes after the next: its first draft is right as long as it reads the state of the right token.
 */
async function rightFiles(): Promise<{ model: string; eagle: string }> {
  let embeddings: Float32Array = new Float32Array();
  let width = 0;
  const isZero = (tensor: string): boolean => /(attn_output|ffn_down)\.weight$/.test(tensor);
  const shifted = (values: Float32Array, by: number): void => {
    const rows = embeddings.length / width;
    for (let row = 0; row < rows; row++)
      values.set(embeddings.subarray(row * width, (row + 1) * width), ((row + by) % rows) * width);
  };
  const isOne = (tensor: string): boolean => tensor === 'output_norm.weight';
  const model = await rewritten(
    files['qwen3-output']!,
    path.join(folder, 'right.gguf'),
    (tensor, shape, values) => {
      if (tensor === 'token_embd.weight') {
        embeddings = values;
        width = shape[0]!;
        return false;
      }
      if (isZero(tensor)) values.fill(0);
      else if (isOne(tensor)) values.fill(1);
      return isZero(tensor) || isOne(tensor);
    },
  );
  const moved = await rewritten(model, path.join(folder, 'moved.gguf'), (tensor, _, values) => {
    if (tensor === 'output.weight') shifted(values, 1);
    return tensor === 'output.weight';
  });
  const eagle = await rewritten(
    files['eagle3-output']!,
    path.join(folder, 'moved-eagle3.gguf'),
    (tensor, shape, values) => {
      if (isZero(tensor)) values.fill(0);
      else if (isOne(tensor)) values.fill(1);
      else if (tensor === 'output.weight') shifted(values, 2);
      else if (tensor === 'fc.weight') {
        values.fill(0);
        for (let i = 0; i < width; i++) values[i * shape[0]! + 2 * width + i] = 1; // of the last of its layers
      } else return false;
      return true;
    },
  );
  return { model: moved, eagle };
}

describe('a file that is right', () => {
  let right: { model: string; eagle: string };
  beforeAll(async () => {
    right = await rightFiles();
  });
  it('drafts from the state of the token before', { timeout: 60_000 }, async () => {
    const options = { model: right.model, gpu: false as const, threads: 1, contextSize: 256 };
    const speculation = { method: 'draft' as const, model: right.eagle, maxTokens: 1 };
    const runtime = await createRuntime({ ...options, speculation });
    for (let i = 0; i < 8; i++) {
      const request = asked(`one ${i} two three four`, { temperature: 0, max_tokens: 100 });
      const plain = await runtime.createCompletion({ ...request, speculation: false });
      const drafted = await runtime.createCompletion(request);
      expect(drafted.choices[0]!.token_ids).toEqual(plain.choices[0]!.token_ids);
    }
    const { draftedTokens, acceptedTokens } = runtime.stats();
    await runtime.close();
    expect(acceptedTokens).toBeGreaterThan(5);
    expect(acceptedTokens).toBeGreaterThan(0.9 * draftedTokens);
  });

  it('drafts with `auto` where it lies beside the model', { timeout: 60_000 }, async () => {
    const plain = await answers(right.model, false);
    const drafted = await answers(right.model, 'auto');
    expect(drafted.tokens).toEqual(plain.tokens);
    expect(plain.loaded).toBe(1);
    expect(drafted.loaded).toBe(2);
  });
});

it('answers the same behind an adapter that changes the model', { timeout: 60_000 }, async () => {
  const model = files['qwen3']!;
  await using trainer = await openTrainer({ model, rank: 4, gpu: false, threads: 1, contextSize: 64 });
  await trainer.loadAdapter(randomAdapter(trainer, normals(3), 0.3));
  await trainer.save(path.join(folder, 'adapter'));
  const adapters = [{ file: path.join(folder, 'adapter', CHECKPOINT_FILES.gguf) }];
  const ask = async (speculation: Speculation, adapters: readonly { file: string }[]) => {
    await using runtime = await createRuntime({
      model: { path: model, adapters: [...adapters] },
      speculation,
      gpu: false,
      threads: 1,
      contextSize: 256,
    });
    const { choices } = await runtime.createCompletion(asked('one two', { temperature: 0, logprobs: true }));
    return { ids: choices[0]!.token_ids, draftedTokens: runtime.stats().draftedTokens };
  };
  const [bare, plain] = [await ask(false, []), await ask(false, adapters)];
  const drafted = await ask({ method: 'draft', model: files['eagle3']!, maxTokens: 3 }, adapters);
  expect(plain.ids).not.toEqual(bare.ids);
  expect(drafted.ids).toEqual(plain.ids);
  expect(drafted.draftedTokens).toBeGreaterThan(0);
});

describe('a file that cannot draft', () => {
  it.each([
    ['qwen2', 'eagle3', 'UNSUPPORTED', /does not keep the states/],
    [
      'qwen35-mtp',
      'eagle3',
      'UNSUPPORTED',
      /without a head that drafts, got one with layers for multi-token/,
    ],
    ['qwen3', 'wide', 'INVALID_REQUEST', /target_hidden_size 128, got .* with 256/],
    ['qwen3', 'deep', 'INVALID_REQUEST', /target_layers below 4, got .* with 9/],
    ['qwen3', 'listed', 'MODEL_INVALID', /d2t: expected ids of the \d+ tokens, got 99999/],
  ])('for %s: %s is refused by name', { timeout: 60_000 }, async (name, file, code, message) => {
    const { decode, encode } = await import('../../engine/gguf/files.ts');
    const parts = decode(fs.readFileSync(files['eagle3']!));
    const set = (key: string, at: number, value: number): void => {
      const found = parts.keys.find((one) => one.name === `eagle3.${key}`)!;
      found.items[at] = Buffer.from(Uint32Array.of(value).buffer);
    };
    if (file === 'wide') set('target_hidden_size', 0, 256);
    if (file === 'deep') set('target_layers', 2, 9);
    if (file === 'listed')
      parts.tensors.push({
        name: 'd2t',
        dims: [2n],
        type: 27,
        data: Buffer.from(BigInt64Array.of(1n, 99999n).buffer),
      });
    const changed = path.join(folder, `${file}.gguf`);
    fs.writeFileSync(changed, encode(parts));
    const runtime = await createRuntime({ model: files[name]!, gpu: false, threads: 1, contextSize: 256 });
    const speculation = { method: 'draft' as const, model: changed };
    await expect(runtime.createCompletion(asked('one', { speculation }))).rejects.toMatchObject({
      code,
      param: 'speculation.model',
      message: expect.stringMatching(message),
    });
    await runtime.close();
  });
});
