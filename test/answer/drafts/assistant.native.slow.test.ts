/** An assistant of Gemma 4 as a source of drafts: right or wrong, no answer changes. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { architectureFiles } from '../../architectures/files.ts';
import { decode, encode, type Parts } from '../../engine/gguf/files.ts';
import { answers, asked, rewritten } from './drafted.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-assistant-'));
const OPTIONS = { gpu: false, threads: 1, contextSize: 512 } as const;
let files: Record<string, string>;
let right: { model: string; assistant: string };
beforeAll(async () => {
  files = architectureFiles(['gemma4', 'gemma4-moe', 'gemma4-output', 'gemma4-assistant', 'gemma3', 'qwen3']);
  right = await rightFiles();
}, 120_000);
afterAll(() => fs.rmSync(folder, { recursive: true }));

const drafting = (model: string, maxTokens = 3) => ({ method: 'draft', model, maxTokens }) as const;

describe.each(['gemma4', 'gemma4-moe'])('%s', (name) => {
  it('answers the same with drafts that are wrong', { timeout: 60_000 }, async () => {
    const plain = await answers(files[name]!, false);
    const drafted = await answers(files[name]!, drafting(files['gemma4-assistant']!));
    expect(drafted.tokens).toEqual(plain.tokens);
    expect(drafted.draftedTokens).toBeGreaterThan(0);
    expect(drafted.loaded).toBe(2);
  });
});

/**
 * A model that lets the token with the next id follow each, at temperature 0, and an assistant that takes the token two ids behind the one
 * of its state, and hands on the state of its own token: its drafts are right as long as each state is that of the token before.
 */
async function rightFiles(): Promise<{ model: string; assistant: string }> {
  let embeddings: Float32Array = new Float32Array();
  let width = 0;
  const isZero = (tensor: string): boolean => /(attn_output|ffn_down|\.proj)\.weight$/.test(tensor);
  const isOne = (tensor: string): boolean => /^output_norm|layer_output_scale/.test(tensor);
  /** Writes the embedding of each token into the row so many below, behind `from` numbers. */
  const shifted = (values: Float32Array, rowSize: number, from: number, by: number): void => {
    const rows = embeddings.length / width;
    for (let row = 0; row < rows; row++)
      values.set(embeddings.subarray(row * width, (row + 1) * width), ((row + by) % rows) * rowSize + from);
  };
  const simple = (tensor: string, values: Float32Array): boolean => {
    if (isZero(tensor)) values.fill(0);
    else if (isOne(tensor)) values.fill(1);
    return isZero(tensor) || isOne(tensor);
  };
  const still = path.join(folder, 'still.gguf');
  await rewritten(files['gemma4-output']!, still, (tensor, shape, values) => {
    if (tensor === 'token_embd.weight') {
      embeddings = values;
      width = shape[0]!;
    }
    return simple(tensor, values);
  });
  const model = await rewritten(still, path.join(folder, 'right.gguf'), (tensor, _, values) => {
    if (tensor === 'output.weight') shifted(values, width, 0, 1);
    return tensor === 'output.weight';
  });
  const diagonal = (values: Float32Array, inputs: number): void => {
    values.fill(0);
    for (let i = 0; i * inputs + i < values.length; i++) values[i * inputs + i] = 1;
  };
  const assistant = await rewritten(
    files['gemma4-assistant']!,
    path.join(folder, 'right-helper.gguf'),
    (tensor, [inputs], values) => {
      if (simple(tensor, values)) return true;
      if (/pre_projection|post_projection/.test(tensor))
        diagonal(values, inputs!); // token and state; back to the token
      else if (tensor === 'token_embd.weight') {
        values.fill(0);
        shifted(values, inputs!, width, 2);
      } else return false;
      return true;
    },
  );
  return { model, assistant };
}

describe('an assistant that is right', () => {
  const ask = (i: number, tokens = 60) =>
    asked(`one ${i} two three four `.repeat(1 + (i % 4)), { temperature: 0, max_tokens: tokens });

  it.each([
    ['in turn', false],
    ['at once', true],
  ])('drafts from the states of the tokens before, asked %s', { timeout: 60_000 }, async (_, atOnce) => {
    await using runtime = await createRuntime({
      ...OPTIONS,
      model: right.model,
      maxSequences: 4,
      speculation: drafting(right.assistant),
    });
    const plain: unknown[] = [];
    for (let i = 0; i < 8; i++) {
      const { choices } = await runtime.createCompletion({ ...ask(i), speculation: false });
      plain.push(choices[0]!.token_ids);
    }
    const steps = runtime.stats().steps;
    const drafted: unknown[] = [];
    const draft = async (i: number): Promise<void> => {
      drafted[i] = (await runtime.createCompletion(ask(i))).choices[0]!.token_ids;
    };
    if (atOnce) await Promise.all(plain.map((_, i) => draft(i)));
    else for (let i = 0; i < 8; i++) await draft(i);
    expect(drafted).toEqual(plain);
    const { draftedTokens, acceptedTokens } = runtime.stats();
    expect(acceptedTokens).toBeGreaterThan(100);
    expect(acceptedTokens).toBeGreaterThan(0.9 * draftedTokens);
    expect(runtime.stats().steps - steps).toBeLessThan(0.7 * steps);
  });

  it('drafts in later turns, behind a cached conversation, and after aborts', {
    timeout: 60_000,
  }, async () => {
    await using runtime = await createRuntime({
      ...OPTIONS,
      model: right.model,
      speculation: drafting(right.assistant),
    });
    const complete = async (prompt: number[], speculation?: false) => {
      const { choices, usage } = await runtime.createTextCompletion({
        prompt,
        max_tokens: 30,
        temperature: 0,
        ignore_eos: true,
        return_token_ids: true,
        cache_salt: speculation === false ? 'plain' : 'drafted',
        ...(speculation === false ? { speculation } : {}),
      });
      return { ids: choices[0]!.token_ids!, cached: usage.prompt_tokens_details?.cached_tokens ?? 0 };
    };
    let prompt = Array.from({ length: 70 }, (_, i) => 261 + ((i * 7) % 20));
    for (let turn = 0; turn < 4; turn++) {
      const aborting = new AbortController();
      const stream = await runtime.createTextCompletion(
        { prompt, max_tokens: 200, ignore_eos: true, temperature: 0, stream: true },
        { signal: aborting.signal },
      );
      await expect(
        (async () => {
          for await (const _ of stream) aborting.abort();
        })(),
      ).rejects.toMatchObject({ code: 'ABORTED' });
      const plain = await complete(prompt, false);
      const before = runtime.stats().acceptedTokens;
      const drafted = await complete(prompt);
      expect(drafted.ids).toEqual(plain.ids);
      expect(runtime.stats().acceptedTokens - before).toBeGreaterThan(5);
      if (turn > 0) expect(drafted.cached).toBeGreaterThan(60);
      prompt = [...prompt, ...drafted.ids, 265 + turn, 275 + turn];
    }
  });

  it('comes while others are answered, and leaves their caches as they are', {
    timeout: 60_000,
  }, async () => {
    const model = files['gemma4']!; // answers depend on their whole prompts
    const prompts = [90, 130, 60].map((length, k) =>
      Array.from({ length }, (_, i) => 261 + ((i * (3 + k) + i * i) % 26)),
    );
    const request = (prompt: number[]) => ({
      prompt,
      max_tokens: 60,
      temperature: 0,
      ignore_eos: true,
      return_token_ids: true,
      speculation: false as const,
    });
    const run = async (attaches: boolean) => {
      await using runtime = await createRuntime({ ...OPTIONS, model, maxSequences: 4 });
      const first = await runtime.createTextCompletion(request(prompts[0]!)); // stays as a cached prompt
      const stream = await runtime.createTextCompletion({ ...request(prompts[1]!), stream: true });
      const ids: number[] = [];
      for await (const { choices } of stream) {
        ids.push(...(choices[0]?.token_ids ?? []));
        if (ids.length >= 5 && attaches && runtime.loaded().length === 1) {
          const speculation = drafting(files['gemma4-assistant']!);
          await runtime.createTextCompletion({ ...request(prompts[2]!), max_tokens: 20, speculation });
          expect(runtime.loaded()).toHaveLength(2);
        }
      }
      const later = await runtime.createTextCompletion(
        request([...prompts[0]!, ...first.choices[0]!.token_ids!, 270, 271]),
      );
      const cut = await runtime.createTextCompletion(request([...prompts[0]!.slice(0, 50), 270, 271]));
      return [ids, later, cut].map((one) =>
        Array.isArray(one)
          ? one
          : [one.choices[0]!.token_ids, one.usage.prompt_tokens_details?.cached_tokens],
      );
    };
    expect(await run(true)).toEqual(await run(false));
  });

  it('ends with the runtime while it drafts', { timeout: 60_000 }, async () => {
    const runtime = await createRuntime({
      ...OPTIONS,
      model: right.model,
      speculation: drafting(right.assistant),
    });
    const request = { prompt: [261, 262], max_tokens: 400, ignore_eos: true, temperature: 0 };
    const stream = await runtime.createTextCompletion({ ...request, stream: true });
    let chunks = 0;
    const read = async (): Promise<void> => {
      for await (const _ of stream) if (++chunks === 5) void runtime.close();
    };
    await expect(read()).rejects.toMatchObject({ code: 'CLOSED' });
    await runtime.close();
  });

  it('drafts with `auto` where it lies beside the model, and has no cache', { timeout: 60_000 }, async () => {
    const beside = fs.mkdtempSync(path.join(folder, 'beside-'));
    const model = path.join(beside, 'model.gguf');
    fs.copyFileSync(right.model, model);
    fs.copyFileSync(right.assistant, path.join(beside, 'model-assistant-F32.gguf'));
    await using runtime = await createRuntime({ ...OPTIONS, model, speculation: 'auto' });
    await runtime.createCompletion(ask(1));
    const [, assistant] = runtime.loaded();
    expect(assistant!.memory!.cache).toBe(0);
    expect(assistant!.memory!.weights).toBeGreaterThan(0);
  });

  it('leaves a model alone whose file only has such a name', { timeout: 60_000 }, async () => {
    const beside = fs.mkdtempSync(path.join(folder, 'named-'));
    const model = path.join(beside, 'model.gguf');
    fs.copyFileSync(right.model, model);
    fs.copyFileSync(files['gemma3']!, path.join(beside, 'my-assistant.gguf'));
    const lines: string[] = [];
    await using runtime = await createRuntime({
      ...OPTIONS,
      model,
      speculation: 'auto',
      log: (_level: string, text: string) => void lines.push(text),
    });
    await runtime.createCompletion(ask(1));
    expect(runtime.loaded()).toHaveLength(1);
    expect(lines.join('\n')).toMatch(
      /my-assistant\.gguf beside it does not draft: .*expected an EAGLE-3 file or an assistant/,
    );
  });
});

describe('an assistant that cannot draft', () => {
  const key = (parts: Parts, name: string) =>
    parts.keys.find((one) => one.name === `gemma4-assistant.${name}`)!;
  const set =
    (name: string, value: number) =>
    (parts: Parts): void => {
      key(parts, name).items[0] = Buffer.from(Uint32Array.of(value).buffer);
    };
  it.each<[string, string, ((parts: Parts) => void) | null, string, RegExp]>([
    ['qwen3', 'any', null, 'UNSUPPORTED', /an assistant drafts for models of gemma4 only/],
    ['gemma3', 'any', null, 'UNSUPPORTED', /an assistant drafts for models of gemma4 only/],
    [
      'gemma4',
      'wide',
      set('embedding_length_out', 64),
      'INVALID_REQUEST',
      /embedding_length_out 128, got .* with 64/,
    ],
    [
      'gemma4',
      'more heads',
      set('attention.head_count_kv', 4),
      'INVALID_REQUEST',
      /keys and values of 64 and 64 numbers in layers with a window, got .* with 128 and 128/,
    ],
    [
      'gemma4',
      'fewer layers',
      set('nextn_predict_layers', 1),
      'MODEL_INVALID',
      /nextn_predict_layers: expected a number .*2.*, got 1/,
    ],
    [
      'gemma4',
      'no width',
      (parts) => {
        parts.keys = parts.keys.filter(({ name }) => name !== 'gemma4-assistant.embedding_length_out');
      },
      'MODEL_INVALID',
      /embedding_length_out/,
    ],
    [
      'gemma4',
      'other tokens',
      ({ keys }) => {
        keys.find(({ name }) => name === 'tokenizer.ggml.tokens')!.items[280] = Buffer.from('another');
      },
      'INVALID_REQUEST',
      /its token 280 is "another"/,
    ],
  ])('for %s: %s is refused by name', { timeout: 60_000 }, async (name, kind, change, code, message) => {
    let assistant = files['gemma4-assistant']!;
    if (change) {
      const parts = decode(fs.readFileSync(assistant));
      change(parts);
      assistant = path.join(folder, `${kind.replaceAll(' ', '-')}.gguf`);
      fs.writeFileSync(assistant, encode(parts));
    }
    await using runtime = await createRuntime({ ...OPTIONS, model: files[name]! });
    const plain = await runtime.createCompletion(asked('one', { temperature: 0 }));
    const speculation = drafting(assistant);
    await expect(runtime.createCompletion(asked('one', { speculation }))).rejects.toMatchObject({
      code,
      param: 'speculation.model',
      message: expect.stringMatching(message),
    });
    const again = await runtime.createCompletion(asked('one', { temperature: 0 }));
    expect(again.choices[0]!.token_ids).toEqual(plain.choices[0]!.token_ids);
  });

  it('alone is none that answers', async () => {
    await using runtime = await createRuntime({ ...OPTIONS, model: files['gemma4-assistant']! });
    await expect(runtime.createCompletion(asked('one'))).rejects.toMatchObject({
      code: 'UNSUPPORTED',
      message: expect.stringContaining('got one of gemma4-assistant'),
    });
  });
});
