/**
 * Every field of every request and option from the extremes of its JSON type, alone and two at a time: each is taken, or
 * refused at once by an error of ours that says where. `ONPOLICY_DRAWS=2000000` draws more.
 */
import { afterAll, describe, expect, it } from 'vitest';
import { countOf } from '../counts.ts';
import { countPlaces, inWords, random } from './draws.ts';
import { ENTRY_POINTS, judge } from './entry-points.ts';

const DRAWS = countOf('ONPOLICY_DRAWS', 100_000);
const SEED = Number(process.env['ONPOLICY_SEED'] ?? 20_261_123);

/** Draws of each entry point: the more places it has, the more. */
const weights = ENTRY_POINTS.map(({ form }) => Math.sqrt(countPlaces(form)));
const sum = weights.reduce((total, weight) => total + weight, 0);
const rows = ENTRY_POINTS.map(
  (entry, i) => [entry.name, entry, Math.ceil((DRAWS * weights[i]!) / sum)] as const,
);

const counts = { drawn: 0, taken: 0 };
afterAll(() => process.stdout.write(`${JSON.stringify(counts)}\n`));

describe('the entry point', () => {
  it.each(rows)('for %s', { timeout: 60_000 + DRAWS }, (_, entry, count) => {
    const problems: string[] = [];
    const draws = random(entry.form, SEED);
    for (let drawn = 0; drawn < count; ) {
      const draw = draws.next().value!;
      if (entry.isWire && !draw.isJson) continue;
      const { isTaken, problem } = judge(entry, draw);
      if (problem !== null) problems.push(`${inWords(draw)}: ${problem}`);
      drawn += 1;
      counts.drawn += 1;
      counts.taken += Number(isTaken);
    }
    expect(problems.slice(0, 20), `${problems.length} of ${count}`).toEqual([]);
  });
});
