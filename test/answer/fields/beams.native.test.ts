/** Beam search through the public API equals a search through every continuation, in 40 random cases. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exclusionRules } from '../../../src/protocol/rules/exclusions.ts';
import { fieldGroups } from '../../../src/protocol/schemas/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { randomNumbers } from '../../fakes/random-numbers.ts';
import { ask, EXACT_MODEL, type Fields, onlyThese, PLAIN } from './model.ts';

const CASES = 40;
let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1, model: EXACT_MODEL, contextSize: 128 });
});
afterAll(() => runtime.close());

type Path = { readonly ids: readonly number[]; readonly score: number };

/** The model's own log-probabilities of every token, at the beginning and after `first`. */
async function rowsAfter(question: string, first: number, fields: Fields): Promise<Map<number, number>[]> {
  const { choices } = await ask(runtime, question, {
    ...fields,
    logits_processors: [onlyThese([first], first)],
    logprobs: true,
    top_logprobs: -1,
    return_tokens_as_token_ids: true,
  });
  return choices[0]!.logprobs!.content.map(
    ({ top_logprobs }) =>
      new Map(top_logprobs.map(({ token, logprob }) => [Number(token.slice('token_id:'.length)), logprob])),
  );
}

async function everyPath(question: string, allowed: readonly number[], fields: Fields): Promise<Path[]> {
  const rows = await Promise.all(allowed.map((first) => rowsAfter(question, first, fields)));
  const paths = allowed.flatMap((first, i) =>
    allowed.map((second) => ({
      ids: [first, second],
      score: rows[i]![0]!.get(first)! + rows[i]![1]!.get(second)!,
    })),
  );
  return paths.sort((a, b) => b.score - a.score);
}

describe('beam search', () => {
  it('applies or refuses every sampling step', () => {
    const refused = exclusionRules.map(({ name }) => name.slice('beam search without '.length));
    const left = Object.keys(fieldGroups['Sampling']!).filter((field) => !refused.includes(field));
    const meansBeams = ['use_beam_search', 'length_penalty'];
    const needsProcessors = ['inference_xargs'];
    const applied = ['logit_bias', 'allowed_token_ids', 'bad_words'];
    expect(left.toSorted()).toEqual([...meansBeams, ...needsProcessors, ...applied].toSorted());
  });

  it('applies logit_bias and bad_words', async () => {
    const firstOf = async (fields: Fields): Promise<number> => {
      const asked = { chat_template: PLAIN, max_tokens: 2, ignore_eos: true, return_token_ids: true };
      const { choices } = await ask(runtime, 'Hi', { ...asked, use_beam_search: true, n: 2, ...fields });
      return choices[0]!.token_ids![0]!;
    };
    const best = await firstOf({});
    expect(await firstOf({ logit_bias: { [best]: -100 } })).not.toBe(best);
    expect(await firstOf({ logit_bias: { 70: 100 } })).toBe(70);
    const word = (await runtime.detokenize([best])).trim();
    expect(word).not.toBe('');
    expect(await firstOf({ bad_words: [word] })).not.toBe(best);
  });

  it('finds the best continuations, in their order, of random prompts over random tokens', async () => {
    const next = randomNumbers(5);
    const pick = (count: number): number => Math.floor(next() * count);
    for (let index = 0; index < CASES; index++) {
      const question = Array.from({ length: 1 + pick(6) }, () => `${pick(10 ** 6)}`).join(' ');
      const allowed = [...new Set(Array.from({ length: 3 }, () => 3 + pick(150)))];
      const width = 1 + pick(9);
      const fields = { chat_template: PLAIN, max_tokens: 2, ignore_eos: true };
      const beams = await ask(runtime, question, {
        ...fields,
        use_beam_search: true,
        n: width,
        allowed_token_ids: allowed,
        logprobs: true,
        return_token_ids: true,
      });
      const all = await everyPath(question, allowed, fields);
      const found = beams.choices.map(({ token_ids, logprobs }) => ({
        ids: token_ids!,
        score: logprobs!.content.reduce((sum, { logprob }) => sum + logprob, 0),
      }));
      // With as many beams as the first step has tokens nothing can be missed.
      if (width >= allowed.length) {
        const expected = all.slice(0, width);
        expect(found.map(({ ids }) => ids)).toEqual(expected.map(({ ids }) => ids));
        for (const [i, { score }] of found.entries()) expect(score).toBeCloseTo(expected[i]!.score, 3);
      } else {
        for (const { ids, score } of found)
          expect(score).toBeCloseTo(all.find((path) => path.ids.join() === ids.join())!.score, 3);
      }
    }
  });
});
