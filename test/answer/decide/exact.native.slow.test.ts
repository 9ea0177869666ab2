/** The probabilities of decisions, in F32, against logits of the bare engine: labels summed and texts enumerated. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { DecisionAnswer, DecisionQuestion, ModelOptions } from '../../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { softmax } from '../../fakes/reference-sampler.ts';
import {
  lastLogits,
  promptLogits,
  quantize,
  whyNoBareEngine,
} from '../../models/formats/reference/bare-engine.ts';
import { writeTinyModel } from '../../rl/tiny-model.ts';
import { BYTES, CODES, choices, levels, numbersOf, QUESTIONS, TICKET } from './questions.ts';

const EMBEDDED_FILE = path.resolve(import.meta.dirname, '../../../models/onpolicy-tiny.gguf');
const root = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-exact-'));
afterAll(() => fs.rmSync(root, { recursive: true }));

async function open(file: string, model: Partial<ModelOptions> = {}) {
  const exact = { path: file, fusedAttention: false, cacheType: 'f32', ...model } as const;
  return await createRuntime({ threads: 1, gpu: false, model: exact });
}

async function randomModel() {
  const file = path.join(root, 'random.gguf');
  await writeTinyModel(file, { architecture: 'llama', type: 'f32', ...CODES });
  return file;
}

/** Returns the probability of each text and an end behind a prompt: the product of those of its tokens. */
async function productsOf(
  runtime: Runtime,
  file: string,
  prompt: readonly number[],
  texts: readonly string[],
) {
  const end = await runtime.tokenize('</s>', { parseSpecial: true });
  return await Promise.all(
    texts.map(async (text) => {
      const tokens = [...(await runtime.tokenize(text)), ...end];
      const rows = promptLogits(file, [...prompt, ...tokens], 'f32').slice(prompt.length - 1);
      return tokens.reduce((product, id, i) => product * softmax(rows[i]!)[id]!, 1);
    }),
  );
}

/** Compares an answer with the probabilities of its options at temperature 1. */
function expectOptions(answer: DecisionAnswer, options: readonly number[], temperature: number): void {
  const mass = options.reduce((sum, one) => sum + one, 0);
  expect(Math.abs(answer.label_mass - mass)).toBeLessThan(1e-6);
  const powers = options.map((one) => one ** (1 / temperature));
  const all = powers.reduce((sum, one) => sum + one, 0);
  const found = numbersOf(answer);
  expect(found).toHaveLength(options.length);
  for (const [k, one] of powers.entries())
    expect(Math.abs(found[k]! - one / all)).toBeLessThan(1e-6 / Math.min(1, temperature)); // it divides errors, too
}

/** Compares the answers to questions at several temperatures with the bare engine. */
async function expectBare(
  file: string,
  questions: readonly DecisionQuestion[],
  model: Partial<ModelOptions>,
) {
  await using exact = await open(file, model);
  let rows: number[][] | null = null;
  for (const temperature of [0.1, 1, 7]) {
    const request = { input: TICKET, questions, temperature, return_token_ids: true };
    const answers = (await exact.decide(request)).answers as readonly DecisionAnswer[];
    const prompts = answers.map(({ prompt_token_ids }) => prompt_token_ids!);
    rows ??= lastLogits(file, prompts, { f32: true }).map(softmax);
    for (const [i, answer] of answers.entries()) {
      const row = rows[i]!;
      const options = answer.label_token_ids!.map((ids) => ids.reduce((sum, id) => sum + row[id]!, 0));
      expectOptions(answer, options, temperature);
    }
  }
}

const choiceOf = (count: number): DecisionQuestion => ({
  type: 'choice',
  instructions: 'Which?',
  choices: Array.from({ length: count }, (_, k) => ({ value: `${k}` })),
});

describe.skipIf(whyNoBareEngine())('the numbers of decisions', () => {
  it('of predicates, scores and 2 to 255 choices are those of the bare engine: a random model', async () => {
    const questions = [
      ...Object.values(QUESTIONS),
      ...[2, 3, 26, 27, 60, 61, 255].map(choiceOf),
      ...[2, 10].map((n): DecisionQuestion => ({ type: 'score', instructions: 'How?', levels: levels(n) })),
    ];
    await expectBare(await randomModel(), questions, {});
  }, 180_000);

  // Its logits are large, so that another order of their sums shows: the engine's own kernels compute both.
  it('are those of the bare engine: the embedded model', async () => {
    const file = path.join(root, 'f32.gguf');
    quantize(EMBEDDED_FILE, file, 'f32');
    const questions: DecisionQuestion[] = [
      ...Object.values(QUESTIONS),
      ...[2, 3, 26].map((n) => ({ type: 'choice' as const, instructions: 'Which?', choices: choices(n) })),
      { type: 'score', instructions: 'How much?', levels: levels(10) },
    ];
    await expectBare(file, questions, { kernels: 'plain' });
  }, 180_000);

  it('of labels of several tokens are products of theirs, and of an end: a random model', async () => {
    const file = path.join(root, 'bytes.gguf');
    await writeTinyModel(file, { architecture: 'llama', type: 'f32', ...BYTES });
    await using exact = await open(file);
    const questions: DecisionQuestion[] = [QUESTIONS.urgent, choiceOf(27)];
    const codes = Array.from(
      { length: 27 },
      (_, i) => `${'AB'[Math.floor(i / 26)]}${String.fromCharCode(65 + (i % 26))}`,
    );
    const { answers } = await exact.decide({ input: 'Hi.', questions, return_token_ids: true });
    for (const [i, labels] of [['yes', 'no'], codes].entries()) {
      const answer = answers[i] as DecisionAnswer;
      expect(answer.label_token_ids).toBeUndefined();
      expectOptions(answer, await productsOf(exact, file, answer.prompt_token_ids!, labels), 1);
    }
  }, 180_000);

  it('of texts are products of the probabilities of their tokens and of an end: a random model', async () => {
    const file = await randomModel();
    await using exact = await open(file);
    const texts = ['a', 'ab', 'abc', 'b', 'yes', 'yes, at once', 'YES', 'AB', 'ABC', 'A B'];
    const question: DecisionQuestion = {
      type: 'choice',
      instructions: 'What?',
      choices: texts.map((value) => ({ value })),
    };
    const request = { input: TICKET, questions: [question], read: 'text', return_token_ids: true } as const;
    let options: number[] | null = null; // the prompt is the same at each temperature
    for (const temperature of [0.1, 1, 7]) {
      const answer = (await exact.decide({ ...request, temperature })).answers[0] as DecisionAnswer;
      options ??= await productsOf(exact, file, answer.prompt_token_ids!, texts);
      expectOptions(answer, options, temperature);
    }
  }, 180_000);
});
