/** Sampling and training see one policy: with a cache of 32 bits, log-probabilities of answers are those of the trainer, to the bit. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import type { ChatCompletion, PackedRow, RuntimeOptions } from '../../src/protocol/index.ts';
import { CHECKPOINT_FILES } from '../../src/rl/checkpoint-files.ts';
import { openTrainer, type Trainer } from '../../src/rl/trainer.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { testing } from '../addon/testing-addon.ts';
import { architectureFiles } from '../architectures/files.ts';
import { quantize, whyNoBareEngine } from '../models/formats/reference/bare-engine.ts';
import { randomAdapter } from './random-adapter.ts';
import { normals, packSequence, type TinyModel, writeTinyModel } from './tiny-model.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-same-bits-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));
const EMBEDDED = fileURLToPath(new URL('../../models/onpolicy-tiny.gguf', import.meta.url));
const why = whyNoBareEngine();
const [KERNELS] = testing.matmulKernels();

const SIZES: TinyModel = { architecture: 'qwen3', type: 'q8_0', vocabularySize: 331 };
const MODELS: Record<string, Partial<TinyModel>> = {
  q8_0: {},
  q4_0: { type: 'q4_0' },
  q4_K: { type: 'q4_K' },
  q5_K: { type: 'q5_K' },
  q6_K: { type: 'q6_K' },
  f16: { type: 'f16' },
  f32: { type: 'f32' },
  llama: { architecture: 'llama', headSize: 64 },
  qwen2: { architecture: 'qwen2' },
  smollm3: { architecture: 'smollm3', layers: 4 },
  granite: { architecture: 'granite' },
  phi3: { architecture: 'phi3' },
  experts: { architecture: 'qwen3moe', experts: 4 },
};

/** One of the answers to a prompt: what was sampled, and how likely it was. */
type Answer = {
  readonly prompt: readonly number[];
  readonly tokens: readonly number[];
  readonly logprobs: readonly number[];
};

async function sample(model: string, more: RuntimeOptions, adapter?: string): Promise<Answer[]> {
  await using runtime = await createRuntime({
    model: { path: model, cacheBits: 32 },
    threads: 2,
    contextSize: 512,
    maxSequences: 8,
    gpu: false,
    ...more,
  });
  const groups = await Promise.all([0, 1, 2].map((index) => ask(runtime, index, adapter)));
  return groups.flatMap(({ prompt_token_ids, choices }) =>
    choices.map(({ token_ids, logprobs }) => ({
      prompt: prompt_token_ids!,
      tokens: token_ids!,
      logprobs: logprobs!.content!.map(({ logprob }) => logprob),
    })),
  );
}

const ask = async (runtime: Runtime, index: number, adapter?: string): Promise<ChatCompletion> =>
  await runtime.createCompletion({
    ...(adapter === undefined ? {} : { adapters: [{ file: adapter }] }),
    messages: [{ role: 'user', content: `Question ${index}: ${'why '.repeat(7 + index * 30)}?` }],
    chat_template: '{% for message in messages %}{{ message.content }}{% endfor %}',
    max_tokens: 24,
    n: 3,
    temperature: 1,
    seed: index,
    ignore_eos: true,
    logprobs: true,
    return_token_ids: true,
  });

/** An answer by itself. */
function alone({ prompt, tokens }: Answer): PackedRow {
  const row = packSequence(Int32Array.from([...prompt, ...tokens]));
  return {
    ...row,
    logitRows: row.logitRows.slice(prompt.length - 1),
    targetTokens: row.targetTokens.slice(prompt.length - 1),
  };
}

/** Answers to one prompt, which all see it and not each other. */
function packed(answers: readonly Answer[]): PackedRow {
  const { prompt } = answers[0]!;
  const row = { tokens: [...prompt], positions: prompt.map((_, i) => i), groups: prompt.map(() => 0) };
  const logitRows: number[] = [];
  answers.forEach(({ tokens }, index) => {
    const start = row.tokens.length;
    tokens.forEach((token, i) => {
      logitRows.push(i === 0 ? prompt.length - 1 : start + i - 1);
      row.tokens.push(token);
      row.positions.push(prompt.length + i);
      row.groups.push(index + 1);
    });
  });
  return {
    tokens: Int32Array.from(row.tokens),
    positions: Int32Array.from(row.positions),
    groupIds: Int32Array.from(row.groups),
    parentIds: new Int32Array(row.tokens.length),
    logitRows: Int32Array.from(logitRows),
    targetTokens: Int32Array.from(answers.flatMap(({ tokens }) => tokens)),
  };
}

async function compare(model: string, answers: readonly Answer[]): Promise<void> {
  await using trainer = await openTrainer({ model, rank: 4, gpu: false, threads: 2 });
  await compareWith(trainer, answers, true);
}

async function compareWith(trainer: Trainer, answers: readonly Answer[], adapterOff: boolean): Promise<void> {
  const score = async (row: PackedRow): Promise<number[]> =>
    Array.from((await trainer.forward(row, { gradients: false, adapterOff })).logprobs);
  for (const answer of answers) expect(await score(alone(answer))).toEqual(answer.logprobs);
  for (let first = 0; first < answers.length; first += 3) {
    const group = answers.slice(first, first + 3);
    expect(await score(packed(group))).toEqual(group.flatMap(({ logprobs }) => logprobs));
  }
}

describe.skipIf(KERNELS === undefined)('log-probabilities of samples and of the trainer', () => {
  it.each(Object.entries(MODELS))('%s: equal to the bit', async (name, model) => {
    const file = path.join(folder, `${name}.gguf`);
    await writeTinyModel(file, { ...SIZES, ...model });
    const answers = await sample(file, { deterministic: true });
    expect(new Set(answers.map(({ tokens }) => tokens.join())).size).toBeGreaterThan(6);
    await compare(file, answers);
  });

  // Rounding of eight bits hides a formula that differs a little.
  it.each(
    ['qwen35', 'qwen35moe', 'qwen3next', 'lfm2', 'gpt-oss', 'glm4moe'].flatMap((name) =>
      (['q8_0', 'f32'] as const).map((type) => ({ name, type })),
    ),
  )('$name in $type: equal to the bit', async ({ name, type }) => {
    const file = architectureFiles([name], type)[name]!;
    await compare(file, await sample(file, { deterministic: true }));
  });

  it.each([
    ['qwen3', 4],
    ['qwen2', 16],
    ['phi3', 24],
  ] as const)('%s with an adapter of rank %i: equal to the bit', async (architecture, rank) => {
    const file = path.join(folder, `${architecture}-${rank}.gguf`);
    await writeTinyModel(file, { ...SIZES, architecture });
    await using trainer = await openTrainer({ model: file, rank, alpha: 11, gpu: false, threads: 2 });
    const normal = normals(rank);
    await trainer.loadAdapter(randomAdapter(trainer, normal));
    const checkpoint = path.join(folder, `${architecture}-${rank}`);
    await trainer.save(checkpoint);
    const adapter = path.join(checkpoint, CHECKPOINT_FILES.gguf);
    const [adapted, plain] = [
      await sample(file, { deterministic: true }, adapter),
      await sample(file, { deterministic: true }),
    ];
    expect(adapted[0]!.logprobs).not.toEqual(plain[0]!.logprobs);
    await compareWith(trainer, adapted, false);
    await compareWith(trainer, plain, true);
  });

  it.skipIf(why)(`the embedded model in Q8_0, without deterministic${why ? ` (${why})` : ''}`, async () => {
    const file = path.join(folder, 'embedded.gguf');
    quantize(EMBEDDED, file);
    await compare(file, await sample(file, {}));
  });
});
