/** Code of answers, tested in a compiled worker: what passes, what fails, and what it cannot do. */
import { describe, expect, it } from 'vitest';
import { passesTests } from '../../../src/rl/rollout/rewards.ts';

const TESTS = ['add(1, 2) === 3', 'add(-1, 1) === 0'];
const limits = { timeoutMs: 500, memoryMb: 32 };

describe('tests of an answer', () => {
  it.each<[name: string, answer: string, tests: readonly string[], expected: number]>([
    ['code', 'function add(a, b) { return a + b; }', TESTS, 1],
    ['a fenced block', 'Here:\n```js\nconst add = (a, b) => a + b;\n```\nDone.', TESTS, 1],
    ['half right', 'const add = (a, b) => 3;', TESTS, 0.5],
    ['no code', 'I cannot do that.', TESTS, 0],
    ['it throws', 'function add() { throw new Error(); }', TESTS, 0],
    ['only true passes', 'const add = () => 1;', ['add()'], 0],
    ['tests do not share values', 'let n = 0; const add = () => ++n;', ['add() === 1', 'add() === 1'], 1],
    [
      'an endless loop',
      'function add(a, b) { while (a > 0); return a + b; }',
      ['add(-1, 1) === 0', 'add(1, 2) === 3'],
      0.5,
    ],
    ['endless promises', 'const go = () => Promise.resolve().then(go); go();', ['true'], 0],
    ['all of the memory', 'const a = []; for (;;) a.push(new Array(1e5).fill(1));', ['true'], 0],
    ['no functions of Node', '', ['typeof process === "undefined" && typeof require === "undefined"'], 1],
    ['code made of text', 'const f = () => Function("return 1")();', ['f() === 1'], 0],
    [
      'the way out by an error of Node',
      'let found = "none"; import("x").catch((e) => { found = typeof e.constructor.constructor("return process")(); });',
      ['found === "object"'],
      0,
    ],
  ])('%s', async (_, answer, tests, expected) => {
    expect(await passesTests(tests, limits)(answer)).toBe(expected);
  });
});
