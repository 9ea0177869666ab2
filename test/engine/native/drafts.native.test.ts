/** Tokens of a sequence -> drafts: where they come from, and which of several. */
import { describe, expect, it } from 'vitest';
import { type DraftSources, loadAddon } from '../../../src/engine/native/index.ts';
import { randomNumbers } from '../../fakes/random-numbers.ts';

const { createDrafter, createAnswerIndex, addAnswer, draft } = loadAddon();
const ids = (...tokens: number[]): Int32Array => Int32Array.from(tokens);

function drafted(
  sources: Partial<DraftSources>,
  prompt: number[],
  output: number[],
  limit: number,
): number[] {
  const drafter = createDrafter({ minMatch: 2, usesText: true, ...sources }, ids(...prompt));
  return Array.from(draft(drafter, ids(...output), limit));
}

describe('drafts from the text', () => {
  it.each<[string, number[], number[], number, number[]]>([
    ['what followed the same tokens', [1, 2, 3, 4, 5], [9, 1, 2], 3, [3, 4, 5]],
    ['of several places the longest match', [7, 1, 2, 3, 8, 1, 2, 4], [9, 7, 1, 2], 1, [3]],
    ['of equal ones the newest', [5, 1, 2, 3, 6, 1, 2, 4], [9, 1, 2], 1, [4]],
    ['a period goes on', [1, 2, 3, 1, 2, 3], [1, 2], 7, [3, 1, 2, 3, 1, 2, 3]],
    ['prompt and output alike', [1, 2], [3, 1, 2], 2, [3, 1]],
    ['nothing without a match', [1, 2, 3], [4, 2], 4, []],
    ['nothing after a match that is too short', [1, 2, 3], [2], 4, []],
    ['nothing if none is wanted', [1, 2, 3], [1, 2], 0, []],
    ['nothing in an empty text', [], [], 4, []],
  ])('%s', (_, prompt, output, limit, expected) => {
    expect(drafted({}, prompt, output, limit)).toEqual(expected);
  });

  it('are what a search through the whole text finds', () => {
    const random = randomNumbers(5);
    const text: number[] = [];
    const minMatch = 3;
    const drafter = createDrafter({ minMatch, usesText: true }, ids());
    for (let i = 0; i < 1500; i++) {
      text.push(Math.floor(random() * 6));
      const [next] = draft(drafter, ids(text.at(-1)!), 1);
      let best = { length: minMatch - 1, next: -1 };
      for (let end = minMatch; end < text.length; end++) {
        let length = 0;
        while (length < Math.min(32, end) && text[end - 1 - length] === text.at(-1 - length)) length += 1;
        if (length >= minMatch && length >= best.length) best = { length, next: text[end]! };
      }
      // A bucket with many places is searched through in part.
      if (i < 300) expect(next ?? -1).toBe(best.next);
      else expect(next === undefined).toBe(best.next === -1);
    }
  });
});

describe('drafts from a prediction', () => {
  const prediction = ids(10, 11, 12, 13, 14, 15, 16, 17);
  it.each<[string, number[], number[]]>([
    ['begin with it', [], [10, 11, 12]],
    ['follow it', [10, 11], [12, 13, 14]],
    ['take one other token for a replaced one', [10, 99], [12, 13, 14]],
    ['are none after two others', [10, 99, 98], []],
    ['are none where the answer begins with another token', [99], []],
    ['find the place of an answer that begins before it', [99, 10, 11], [12, 13, 14]],
    ['find the place again by two tokens', [10, 99, 98, 97, 14, 15], [16, 17]],
    ['find a place before', [10, 11, 12, 13, 10, 11], [12, 13, 14]],
    ['end with it', [10, 11, 12, 13, 14, 15, 16, 17], []],
  ])('%s', (_, output, expected) => {
    expect(drafted({ prediction }, [1, 2, 3], output, 3)).toEqual(expected);
  });

  it('come before those from the text', () => {
    expect(drafted({ prediction: ids(4, 5) }, [1, 2, 4, 9], [], 2)).toEqual([4, 5]);
  });
});

describe('drafts from other answers', () => {
  it('are what followed the longest match, up to the end of that answer', () => {
    const answers = createAnswerIndex(2, 2 ** 20);
    addAnswer(answers, ids(1, 2, 3, 4));
    addAnswer(answers, ids(7, 1, 2, 8, 9));
    expect(drafted({ answers }, [], [1, 2], 4)).toEqual([8, 9]);
    expect(drafted({ answers }, [], [7, 1, 2], 4)).toEqual([8, 9]);
    expect(drafted({ answers }, [], [2, 3], 4)).toEqual([4]);
    expect(drafted({ answers }, [], [3, 4], 4)).toEqual([]);
    // a longer match in the text comes first
    expect(drafted({ answers }, [5, 7, 1, 2, 6], [5, 7, 1, 2], 1)).toEqual([6]);
  });

  it('stay within their memory, and are the newest ones', () => {
    const most = 64 * 1024;
    const answers = createAnswerIndex(3, most);
    for (let i = 0; i < 2000; i++) {
      const start = 100 * i;
      const bytes = addAnswer(
        answers,
        Int32Array.from({ length: 50 }, (_, at) => start + at),
      );
      expect(bytes).toBeLessThanOrEqual(most);
    }
    expect(drafted({ answers }, [], [199_900, 199_901, 199_902], 2)).toEqual([199_903, 199_904]);
    expect(drafted({ answers }, [], [0, 1, 2], 2)).toEqual([]);
    expect(addAnswer(createAnswerIndex(3, 0), ids(1, 2, 3))).toBe(0);
  });
});

it.each<[string, () => unknown, string]>([
  ['minMatch', () => createDrafter({ minMatch: 0, usesText: true }, ids()), 'minMatch: expected an integer'],
  [
    'answers',
    () => createDrafter({ minMatch: 1, usesText: true, answers: {} as never }, ids()),
    'answers: expected',
  ],
  ['a drafter', () => draft(createAnswerIndex(1, 1), ids(), 1), 'drafters: expected'],
  ['tokens', () => addAnswer(createAnswerIndex(1, 1), [1] as never), 'tokens: expected an Int32Array'],
])('%s is checked', (_, call, message) => {
  expect(call).toThrow(message);
});
