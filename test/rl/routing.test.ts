/** Experts that tokens took: from choices to the columns of rows, and what of them cannot be replayed. */
import { describe, expect, it } from 'vitest';
import { toRoutedExperts } from '../../src/protocol/index.ts';
import { planData } from '../../src/rl/datum.ts';
import { requireTrainable } from '../../src/rl/jobs/trainable.ts';
import { packRows } from '../../src/rl/pack.ts';
import { resolveSettings } from '../../src/rl/settings.ts';
import { type ChatTokenizer, trajectoryTokens } from '../../src/rl/tokens.ts';

const NONE = 0xffff;
/** Returns routed experts: for each token the same experts in both layers, or none. */
const experts = (tokens: readonly (readonly [number, number] | null)[]) =>
  toRoutedExperts(
    2,
    2,
    Uint16Array.from(tokens.flatMap((ids) => [...(ids ?? [NONE, NONE]), ...(ids ?? [NONE, NONE])])),
  );
const message = { role: 'assistant', content: '' };
const logprobs = (count: number) => ({ content: Array(count).fill({ token: 'x', logprob: -1 }) });
const choice = (prompt: number[], answer: number[], routed: Parameters<typeof experts>[0] | null) => ({
  message,
  prompt_token_ids: prompt,
  token_ids: answer,
  logprobs: logprobs(answer.length),
  ...(routed ? { routed_experts: experts(routed) } : {}),
});
const never = () => {
  throw new Error('nothing is tokenized');
};
const tokenizer: ChatTokenizer = { prompt: never, conversation: never, isEnd: () => false };
const sequencesOf = (choices: object[], replaysExperts = true) =>
  trajectoryTokens({ messages_and_choices: choices as never, reward: 1 }, tokenizer, {
    allowWithoutLogprobs: true,
    replaysExperts,
  });

describe('sequences', () => {
  it('have the experts of all turns, -1 where none knows them', async () => {
    const [sequence] = await sequencesOf([
      choice([1, 2], [3, 4], [null, [0, 1], [2, 3], null]),
      choice([1, 2, 3, 4, 5], [6], [[4, 5], [6, 7], null, [5, 6], [1, 2], null]), // 1 anew, 3 from a cache
    ]);
    expect(sequence!.experts!.width).toBe(4);
    const pairs = Array.from({ length: 6 }, (_, i) => [...sequence!.experts!.ids.slice(4 * i, 4 * i + 2)]);
    expect(pairs).toEqual([
      [4, 5],
      [0, 1],
      [2, 3],
      [5, 6],
      [1, 2],
      [-1, -1],
    ]); // prettier-ignore
  });

  it('have none unless they are to be replayed', async () => {
    const [sequence] = await sequencesOf([choice([1], [2], [[0, 1], null])], false);
    expect(sequence!.experts).toBeNull();
  });

  it('need the experts of every token', async () => {
    await expect(
      sequencesOf([
        choice(
          [1, 2],
          [3],
          [
            [0, 1],
            [0, 1],
          ],
        ),
      ]),
    ).rejects.toThrow('routed_experts of 2 tokens, but a prompt and an answer of 3');
  });
});

describe('rows', () => {
  it('have the experts of each place, of a shared prompt those that any sequence knows', async () => {
    const sequences = [
      ...(await sequencesOf([choice([1, 2], [3], [null, [0, 1], null])])),
      ...(await sequencesOf([choice([1, 2], [4, 5], [[2, 3], null, [4, 5], null])])),
    ].map((sequence) => ({ ...sequence, group: 0, advantage: 1, weight: 1 }));
    const { rows } = packRows(sequences, 64);
    const { tokens, routedExperts } = rows[0]!.row;
    expect([...tokens]).toEqual([1, 2, 3, 4, 5]);
    expect(Array.from(tokens, (_, i) => routedExperts![4 * i])).toEqual([2, 0, -1, 4, -1]);
    expect(routedExperts).toHaveLength(20);
    const cut = packRows([sequences[1]!], 3).rows[0]!.row.routedExperts!;
    expect([...cut]).toEqual([2, 3, 2, 3, -1, -1, -1, -1, 4, 5, 4, 5]);
  });

  it('have no such column without experts', async () => {
    const sequences = (await sequencesOf([choice([1], [2], null)])).map((sequence) => ({
      ...sequence,
      group: 0,
      advantage: 1,
      weight: 1,
    }));
    expect('routedExperts' in packRows(sequences, 64).rows[0]!.row).toBe(false);
  });
});

describe('requests', () => {
  const sampling = { top_p: null, top_k: null, min_p: null };
  const model = { vocabSize: 10, steps: [], experts: { layers: 2, used: 2, count: 8 }, sampling };
  const settings = resolveSettings({ routing: 'replay' });
  const at = 'trajectory_groups.0.trajectories.0.messages_and_choices.0.routed_experts';
  const check = (given: object, has = model, config = settings) =>
    requireTrainable(
      [{ trajectories: [{ messages_and_choices: [given] as never, reward: 1 }] }],
      config,
      has,
    );
  const good = choice([1], [2], [[0, 7], null]);

  it('are replayed with the experts of every token', () => {
    expect(() => check(good)).not.toThrow();
    expect(() => check({ ...good, prompt_token_ids: null })).not.toThrow();
    const own = resolveSettings();
    expect(() => check({ ...good, routed_experts: null }, model, own)).not.toThrow();
    const lax = resolveSettings({ routing: 'replay', allow_training_without_logprobs: true });
    expect(() => check({ ...good, routed_experts: null }, model, lax)).not.toThrow();
  });

  it.each<[string, object, string]>([
    [
      'none',
      { routed_experts: null },
      `${at}: expected the experts of its tokens, which completions with "return_routed_experts": true have`,
    ],
    [
      'other layers',
      { routed_experts: { ...good.routed_experts, layers: 3 } },
      `${at}.layers: expected the 2 layers of the model with experts, got 3`,
    ],
    [
      'another number of them',
      { routed_experts: { ...good.routed_experts, used: 1 } },
      `${at}.used: expected the 2 experts that a token of the model takes, got 1`,
    ],
    [
      'too few tokens',
      { routed_experts: experts([[0, 1]]) },
      `${at}.data: expected 8 numbers, 4 of each of 2 tokens`,
    ],
    [
      'a part of a token',
      { prompt_token_ids: null, routed_experts: { layers: 2, used: 2, data: 'AAEA' } },
      `${at}.data: expected a multiple of 4 numbers`,
    ],
    [
      'an expert that is none',
      { routed_experts: experts([[0, 8], null]) },
      `${at}.data: expected 2 different numbers below 8 for each token and layer, or 65535 for all of them, got 8`,
    ],
    [
      'one expert twice',
      { routed_experts: experts([[3, 3], null]) },
      `${at}.data: expected 2 different numbers below 8`,
    ],
    [
      'a part of a choice',
      { routed_experts: experts([[3, NONE], null]) },
      `${at}.data: expected 2 different numbers below 8`,
    ],
  ])('with %s are refused', (_, change, expected) => {
    expect(() => check({ ...good, ...change })).toThrow(expected);
  });

  it('steps of training runs have no experts to replay', () => {
    const plan = () =>
      planData(
        {
          data: [{ model_input: { chunks: [{ tokens: [1] }] }, loss_fn_inputs: { target_tokens: [2] } }],
          loss_fn: 'policy',
          loss_fn_config: { experimental_config: { routing: 'replay' } },
        },
        { vocabSize: 10, contextSize: 16 },
        null as never,
        false,
      );
    expect(plan).toThrow('loss_fn_config.experimental_config.routing: expected "own" or null, got "replay"');
  });

  it('a model without experts is refused', () => {
    expect(() => check(good, { ...model, experts: null as never })).toThrow(
      'experimental_config.routing: expected "own" or null: the model has no experts, got "replay"',
    );
  });
});
