/** Sums of token counts, of which some are absent. */
import { expect, it } from 'vitest';
import { sumUsage } from '../../src/protocol/index.ts';

const plain = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
const drafts = { accepted_prediction_tokens: 1, rejected_prediction_tokens: 4 };

it('tokens of media and of reasoning are absent if no request has counts of them', () => {
  expect(sumUsage([plain, { ...plain, prompt_tokens_details: { cached_tokens: 2 } }])).toEqual({
    ...{ prompt_tokens: 6, completion_tokens: 4, total_tokens: 10 },
    prompt_tokens_details: { cached_tokens: 2 },
    completion_tokens_details: { accepted_prediction_tokens: 0, rejected_prediction_tokens: 0 },
  });
});

it('one request with a count of them is enough', () => {
  const { prompt_tokens_details, completion_tokens_details } = sumUsage([
    { ...plain, prompt_tokens_details: { cached_tokens: 1, media_tokens: 7 } },
    { ...plain, completion_tokens_details: { ...drafts, reasoning_tokens: 0 } },
    { ...plain, completion_tokens_details: drafts },
  ]);
  expect(prompt_tokens_details).toEqual({ cached_tokens: 1, media_tokens: 7 });
  expect(completion_tokens_details).toEqual({
    ...{ accepted_prediction_tokens: 2, rejected_prediction_tokens: 8 },
    reasoning_tokens: 0,
  });
});
