/** The same weights on both engines: the same tokens, and log-probabilities within 1e-3. */
import { afterAll, describe, expect, it } from 'vitest';
import type { ChatCompletion } from '../../../src/protocol/index.ts';
import {
  ask,
  closeAll,
  EMBEDDED,
  ENGINES,
  fourBits,
  modelOf,
  openRuntime,
  questions,
  wideGguf,
} from './engines.ts';

afterAll(closeAll);

const PROMPTS = questions(200);
const answers = new Map<string, Promise<ChatCompletion[]>>();

/** All prompts at once, greedily. `plain`: on the engine's kernels. */
function answersOf(model: string, kernels?: 'plain'): Promise<ChatCompletion[]> {
  const name = `${kernels} ${model}`;
  let found = answers.get(name);
  if (!found) {
    found = openRuntime(kernels ? { path: model, kernels } : model).then((runtime) =>
      Promise.all(
        PROMPTS.map((question) =>
          runtime.createCompletion(
            ask(question, { max_tokens: 24, logprobs: true, return_token_ids: true, prompt_logprobs: 0 }),
          ),
        ),
      ),
    );
    answers.set(name, found);
  }
  return found;
}

/** The largest difference between log-probabilities of the same tokens. */
function distance(ours: readonly ChatCompletion[], theirs: readonly ChatCompletion[]): number {
  let worst = 0;
  for (const [i, answer] of ours.entries()) {
    const other = theirs[i]!;
    for (const [at, { logprob }] of answer.choices[0]!.logprobs!.content!.entries())
      worst = Math.max(worst, Math.abs(logprob - other.choices[0]!.logprobs!.content![at]!.logprob));
    for (const [at, entry] of answer.prompt_logprobs!.entries())
      for (const [id, { logprob }] of Object.entries(entry ?? {}))
        worst = Math.max(worst, Math.abs(logprob - other.prompt_logprobs![at]![id]!.logprob));
  }
  return worst;
}

const idsOf = (answers: readonly ChatCompletion[]) => answers.map(({ choices }) => choices[0]!.token_ids);
const EXACT = ENGINES.filter((engine) => engine !== 'GGUF' && engine !== 'ONNX, 16-bit cache');

it('there are 200 prompts', () => {
  expect(new Set(PROMPTS).size).toBe(200);
});

describe.each(EXACT)('%s', (engine) => {
  it('gives the same greedy tokens as the GGUF file, 16 prompts at a time', async () => {
    const [ours, theirs] = [await answersOf(modelOf(engine)), await answersOf(EMBEDDED)];
    expect(idsOf(ours)).toEqual(idsOf(theirs));
    expect(ours.map(({ prompt_token_ids: ids }) => ids)).toEqual(
      theirs.map(({ prompt_token_ids: ids }) => ids),
    );
  });

  it('gives the same log-probabilities of answers and prompts as with 32-bit GGUF weights, within 1e-3', async () => {
    const [ours, theirs] = [await answersOf(modelOf(engine)), await answersOf(wideGguf())];
    expect(idsOf(ours)).toEqual(idsOf(theirs));
    expect(distance(ours, theirs)).toBeLessThan(1e-3);
  });
});

describe.skipIf(EXACT.length === 0)('a graph with a cache of 16 bits', () => {
  it('is as far from 32 bits as the GGUF file with its cache of 16 bits', async () => {
    const exact = await answersOf(wideGguf());
    const [graph, file] = await Promise.all(
      [answersOf(modelOf('ONNX, 16-bit cache')), answersOf(EMBEDDED, 'plain')].map(async (found) => {
        const answers = await found;
        const same = answers.map((answer, i) =>
          idsOf([answer])[0]!.join() === idsOf([exact[i]!])[0]!.join() ? i : -1,
        );
        const kept = same.filter((i) => i >= 0);
        expect(kept.length).toBeGreaterThanOrEqual(198); // near ties may fall the other way
        return distance(
          kept.map((i) => answers[i]!),
          kept.map((i) => exact[i]!),
        );
      }),
    );
    expect(file).toBeLessThan(5e-2); // of the likeliest and the unlikeliest tokens
    expect(graph).toBeLessThan(Math.max(1e-2, 1.5 * file!));
  });
});

describe.skipIf(EXACT.length === 0).each(['q4', 'q4, fused attention'] as const)(
  'a graph with %s weights',
  (kind) => {
    it('gives the log-probabilities of the same values as floats, within 1e-3', async () => {
      const [ours, theirs] = [await answersOf(fourBits(kind)), await answersOf(fourBits('rounded'))];
      expect(idsOf(ours)).toEqual(idsOf(theirs));
      expect(distance(ours, theirs)).toBeLessThan(1e-3);
    });
  },
);
