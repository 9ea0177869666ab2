/** Random requests with and without drafts: the same tokens, log-probabilities and ends. ONPOLICY_CASES: how many. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OnpolicyError } from '../../../src/errors.ts';
import type { ChatCompletion, ChatCompletionRequest } from '../../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { countOf } from '../../counts.ts';
import { functionsOf } from '../../fakes/calls.ts';
import { randomNumbers } from '../../fakes/random-numbers.ts';
import { EXACT_MODEL, OTHER_MODEL } from './model.ts';
import { randomRequest } from './random-request.ts';

const CASES = countOf('ONPOLICY_CASES', 240);
const TOGETHER = 4;
/** Rounding of sums that another batch adds up in another order. */
const DIGITS = 4;

let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({
    threads: 1,
    speculation: 'auto',
    model: { path: EXACT_MODEL, toolFormat: 'hermes' },
  });
});
afterAll(() => runtime.close());

async function answer(request: ChatCompletionRequest): Promise<ChatCompletion | string> {
  try {
    return await runtime.createCompletion({ ...request, stream: false });
  } catch (error) {
    expect(error, JSON.stringify(request)).toBeInstanceOf(OnpolicyError);
    return (error as OnpolicyError).code;
  }
}

/** The text with some tokens of it replaced, left out or doubled. */
async function misquote(ids: readonly number[], next: () => number): Promise<string> {
  const changed = ids.flatMap((id) => {
    const dice = next();
    if (dice < 0.04) return [Math.floor(next() * 300)];
    if (dice < 0.08) return [];
    return dice < 0.12 ? [id, id] : [id];
  });
  return await runtime.detokenize(changed);
}

async function withDrafts(
  request: ChatCompletionRequest,
  ids: readonly number[],
  next: () => number,
): Promise<ChatCompletionRequest> {
  const content = await misquote(ids, next);
  const dice = next();
  const method = {
    ...(dice < 0.3
      ? { method: 'draft', model: dice < 0.15 ? EXACT_MODEL : OTHER_MODEL }
      : { method: dice < 0.5 ? 'ngram' : 'suffix', minMatch: 1 }),
    maxTokens: 1 + Math.floor(next() * 12),
  };
  return {
    ...request,
    ...(next() < 0.8 ? { prediction: { type: 'content', content } } : {}),
    speculation: next() < 0.5 ? 'auto' : (method as { method: 'ngram' }),
  };
}

function expectSame(found: ChatCompletion, plain: ChatCompletion, request: ChatCompletionRequest): void {
  for (const [i, { logprobs, ...choice }] of found.choices.entries()) {
    const { logprobs: plainLogprobs, ...plainChoice } = plain.choices[i]!;
    const named = (calls: ChatCompletion['choices'][number]): unknown => ({
      ...calls,
      message: { ...calls.message, tool_calls: functionsOf(calls.message.tool_calls) },
    });
    expect(named(choice as never), JSON.stringify(request)).toEqual(named(plainChoice as never));
    expect(logprobs?.content.length).toBe(plainLogprobs?.content.length);
    for (const [at, { token, logprob, top_logprobs }] of (logprobs?.content ?? []).entries()) {
      const expected = plainLogprobs!.content[at]!;
      expect(token).toBe(expected.token);
      expect(logprob).toBeCloseTo(expected.logprob, DIGITS);
      for (const [rank, top] of top_logprobs.entries())
        expect(top.logprob).toBeCloseTo(expected.top_logprobs[rank]!.logprob, DIGITS);
    }
  }
  expect(found.usage.completion_tokens).toBe(plain.usage.completion_tokens);
}

describe('random requests with drafts', () => {
  it(
    'give what they give without',
    async () => {
      const next = randomNumbers(22);
      const sum = { answered: 0, drafting: 0, accepted: 0, rejected: 0, tokens: 0 };
      const check = async (request: ChatCompletionRequest): Promise<void> => {
        const plain = await answer({ ...request, speculation: false });
        const ids = typeof plain === 'string' ? [] : plain.choices[0]!.token_ids!;
        // The first of these leaves its answer for the second one, which has no prediction.
        for (const drafting of [await withDrafts(request, ids, next), request]) {
          const found = await answer(drafting);
          if (typeof plain === 'string' || typeof found === 'string') {
            expect(found).toBe(plain);
            continue;
          }
          expectSame(found, plain, drafting);
          const details = found.usage.completion_tokens_details!;
          sum.answered += 1;
          sum.drafting += details.accepted_prediction_tokens > 0 ? 1 : 0;
          sum.accepted += details.accepted_prediction_tokens;
          sum.rejected += details.rejected_prediction_tokens;
          sum.tokens += found.usage.completion_tokens;
        }
      };
      for (let done = 0; done < CASES; done += TOGETHER)
        await Promise.all(Array.from({ length: TOGETHER }, () => check(randomRequest(next))));
      expect(sum.answered).toBeGreaterThan(1.6 * CASES);
      // Fewer on a machine under load: drafts are kept as long and as often as the measured pace pays for them.
      expect(sum.drafting).toBeGreaterThan(0.4 * CASES);
      expect(sum.accepted).toBeGreaterThan(CASES);
      expect(sum.rejected).toBeGreaterThan(0.5 * CASES);
      expect(runtime.stats()).toMatchObject({ running: 0, waiting: 0, kvTokensInUse: 0 });
    },
    120_000 + 1000 * CASES,
  );
});
