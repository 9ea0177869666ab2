/** Corrections of questions in words that the embedded model does not know. A fraction of the answers is wrong on purpose. */
import { seedOf, shuffled } from '../../../src/common/index.ts';

/** Pairs of different numbers, each pair once, and whether the first is greater; `wrong` of the answers are not true. */
export function corrections(count: number, seed: number, wrong: number) {
  const pairs = new Set<string>();
  for (let draw = 0; pairs.size < count; draw++) {
    const [a, b] = [10 + (seedOf(seed, draw, 'a') % 90), 10 + (seedOf(seed, draw, 'b') % 90)];
    if (a !== b) pairs.add(`${a} ${b}`);
  }
  const places = shuffled(count, seed, 0);
  return [...pairs].map((pair, i) => {
    const [a, b] = pair.split(' ').map(Number) as [number, number];
    const isWrong = places[i]! < wrong * count;
    const questions = [{ type: 'predicate', instructions: 'What do you say?' }] as const;
    return { input: `Does ${a} exceed ${b}?`, questions, answers: [a > b !== isWrong] };
  });
}
