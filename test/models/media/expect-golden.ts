/** An answer and a line of the data -> equal, or a failed test. */
import { expect } from 'vitest';
import type { ChatCompletion } from '../../../src/protocol/index.ts';
import { type Conversation, TIE } from './golden.ts';

const TOLERANCE = 2e-3;
/** The engine's kernels for other processors, and for Windows, sum in another order than those that made the data: by up to 4.4e-3 with AVX2 alone. */
const GOLDEN_TOLERANCE = 6e-3;

type Token = { readonly id: number; readonly logprob: number };

/** The tokens that llama.cpp's server reports of ours: it leaves out some that end inside a character, and those without text. */
function reported(answer: ChatCompletion, ids: readonly number[]): Token[] {
  const [choice] = answer.choices;
  let next = 0;
  return choice!.logprobs!.content!.flatMap(({ token, bytes, logprob }, i) => {
    const id = choice!.token_ids![i]!;
    const isLeftOut = token === '' || bytes!.some((byte) => byte > 0x7f);
    if (id !== ids[next] && isLeftOut) return [];
    next += 1;
    return [{ id, logprob }];
  });
}

/** Holds an answer to the data: all tokens, or those before a tie. */
export function expectGolden(
  answer: ChatCompletion,
  { token_ids, logprobs, prompt_tokens, margin }: Conversation,
): void {
  expect(answer.usage.prompt_tokens).toBe(prompt_tokens);
  const tokens = reported(answer, token_ids);
  if (margin >= TIE) expect(tokens.map(({ id }) => id)).toEqual(token_ids);
  for (let i = 0; i < token_ids.length && tokens[i]?.id === token_ids[i]; i++)
    expect(Math.abs(tokens[i]!.logprob - logprobs[i]!), `log-probability of token ${i}`).toBeLessThan(
      GOLDEN_TOLERANCE,
    );
}

/** Holds an answer to another one of ours: the same tokens and log-probabilities. */
export function expectEqual(answer: ChatCompletion, other: ChatCompletion): void {
  expect(answer.choices[0]!.token_ids).toEqual(other.choices[0]!.token_ids);
  const [found, expected] = [answer, other].map(({ choices }) =>
    choices[0]!.logprobs!.content!.map(({ logprob }) => logprob),
  );
  for (const [i, logprob] of found!.entries())
    expect(Math.abs(logprob - expected![i]!)).toBeLessThan(TOLERANCE);
}
