/** Groups of trajectories -> rows: attempts that were cut for their length train nothing, and their rewards stay a baseline. */
import { describe, expect, it } from 'vitest';
import { makeBatch } from '../../src/rl/batch.ts';
import { resolveSettings } from '../../src/rl/settings.ts';
import { uniforms } from './drawn-rows.ts';

const tokenizer = { prompt: async () => [], conversation: async () => [], isEnd: () => false };

/** Attempts with their rewards, lengths and ends. */
function drawAttempts(draw: number) {
  const next = uniforms(draw);
  return Array.from({ length: 1 + (draw % 3) }, () =>
    Array.from({ length: 2 + Math.floor(3 * next()) }, () => ({
      reward: draw % 5 === 0 ? 1 : Math.floor(4 * next()),
      tokens: 1 + Math.floor(6 * next()),
      isCut: draw % 7 === 0 || next() < 0.4,
    })),
  );
}

type Attempt = ReturnType<typeof drawAttempts>[number][number];

function trajectory({ reward, tokens, isCut }: Attempt, id: number) {
  return {
    reward,
    messages_and_choices: [
      { role: 'user', content: 'Hi' },
      {
        message: { role: 'assistant', content: 'x' },
        finish_reason: isCut ? 'length' : 'stop',
        prompt_token_ids: [1],
        token_ids: Array<number>(tokens).fill(id),
        logprobs: { content: Array(tokens).fill({ logprob: -1 }) },
      },
    ],
  };
}

describe('mask_truncated', () => {
  it('leaves the tokens of cut answers out, on drawn batches', async () => {
    const settings = resolveSettings({
      mask_truncated: true,
      scale_rewards: false,
      normalize_advantages: false,
    });
    for (let draw = 0; draw < 200; draw++) {
      const attempts = drawAttempts(draw);
      let next = 100;
      const ids = attempts.map((group) => group.map(() => next++));
      const groups = attempts.map((group, g) => ({
        trajectories: group.map((attempt, t) => trajectory(attempt, ids[g]![t]!)),
      }));
      const { rows } = await makeBatch(groups, settings, tokenizer, 4096, async () => {});
      const got = new Map<number, { advantage: number; weight: number; tokens: number }>();
      for (const { row, advantages, weights } of rows)
        row.targetTokens.forEach((id, i) => {
          const tokens = (got.get(id)?.tokens ?? 0) + 1;
          got.set(id, { advantage: advantages[i]!, weight: weights[i]!, tokens });
        });
      const kept = attempts.flatMap((group, g) => {
        const baseline = group.reduce((sum, { reward }) => sum + reward, 0) / group.length;
        return group.flatMap(({ reward, tokens, isCut }, t) =>
          isCut || reward === baseline ? [] : [{ id: ids[g]![t]!, advantage: reward - baseline, tokens }],
        );
      });
      const count = kept.reduce((sum, { tokens }) => sum + tokens, 0);
      const meanWeight = kept.reduce((sum, { tokens }) => sum + tokens / (tokens + 1e-6), 0) / count;
      expect([...got.keys()].sort(), `draw ${draw}`).toEqual(kept.map(({ id }) => id).sort());
      for (const { id, advantage, tokens } of kept) {
        expect(got.get(id)!.tokens).toBe(tokens);
        expect(Math.abs(got.get(id)!.advantage - advantage)).toBeLessThan(1e-9);
        expect(Math.abs(got.get(id)!.weight - 1 / (tokens + 1e-6) / meanWeight)).toBeLessThan(1e-9);
      }
    }
  });

  it('sees the answers of additional histories, too', async () => {
    const settings = resolveSettings({ mask_truncated: true });
    const whole = trajectory({ reward: 1, tokens: 2, isCut: false }, 5);
    const cut = trajectory({ reward: 0, tokens: 2, isCut: true }, 6);
    const histories = {
      ...whole,
      reward: 0,
      additional_histories: [{ messages_and_choices: cut.messages_and_choices }],
    };
    const { rows } = await makeBatch(
      [{ trajectories: [whole, histories] }],
      settings,
      tokenizer,
      64,
      async () => {},
    );
    expect(rows.map(({ row }) => [...row.targetTokens])).toEqual([[5, 5]]);
  });
});
