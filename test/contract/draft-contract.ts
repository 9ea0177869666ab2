/** Contract of every backend about drafts: it samples their rows as long as they match the sampled tokens. */
import { expect, it } from 'vitest';
import { MEMORY_REMOVE } from '../../src/engine/backend/index.ts';
import { ROW_STATUS } from '../../src/engine/native/index.ts';
import type { Row } from '../fakes/rows.ts';
import { type drive, free } from './backend-driver.ts';

const PROMPT = [84, 104, 101, 32, 99, 97, 112, 105, 116, 97, 108];

/** Runs the contract on a backend that is driven. */
export function draftContract({ step, sampled, rowAfter, expectSame }: ReturnType<typeof drive>): void {
  it.each([
    ['right', 2, false],
    ['wrong from the second on', 1, false],
    ['wrong from the second on, before a run-ahead step', 1, true],
    ['wrong', 0, true],
  ])('samples the rows of drafts up to the first wrong one: %s', async (_, right, mayRunAhead) => {
    const expected: Row[] = [];
    const text = [...PROMPT];
    for (let i = 0; i < 4; i++) {
      expected.push(await rowAfter(text));
      text.push(expected[i]!.token);
    }
    const guesses = expected.slice(0, 2).map((row, i) => (i < right ? row.token : row.top[1]![0]));
    const { sampler } = sampled({ topLogprobs: 2 });
    const rows = await step([{ slot: 0, from: 0, tokens: [...PROMPT, ...guesses] }], free(0), {
      sampleRows: Int32Array.from([-1, ...guesses], (_, i) => PROMPT.length - 1 + i),
      samplers: [sampler!, sampler!, sampler!],
      drafts: {
        drafted: Int32Array.of(-1, ...guesses),
        drafters: [null, null, null],
        limits: new Int32Array(9),
      },
      mayRunAhead,
    });
    for (const [i, row] of rows.entries())
      if (i <= right) expectSame(row, expected[i]!);
      else expect(row.status).toBe(ROW_STATUS.PASSED_OVER);
    const from = PROMPT.length + right;
    const edits = right < 2 ? [MEMORY_REMOVE, 0, 0, from, -1] : [];
    const next = { slot: 0, from, tokens: [expected[right]!.token], samples: [sampled({ topLogprobs: 2 })] };
    expectSame((await step([next], edits))[0]!, expected[right + 1]!);
  });
}
