/** Start times of trajectories -> taken if the calendar has them; the oracle is JavaScript's own date. */
import { expect, it } from 'vitest';
import { checkLogRequest } from '../../src/protocol/index.ts';

const takes = (start_time: string): boolean => {
  try {
    checkLogRequest({
      trajectory_groups: [{ trajectories: [{ messages_and_choices: [], reward: 0, start_time }] }],
    });
    return true;
  } catch {
    return false;
  }
};

it('must be days of the calendar', () => {
  for (const year of [1900, 2000, 2023, 2024, 2025, 2100])
    for (let month = 0; month <= 13; month++)
      for (let day = 0; day <= 32; day++) {
        const text = `${year}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}`;
        const date = new Date(Date.UTC(year, month - 1, day));
        const isReal = month >= 1 && date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
        if (takes(text) !== isReal) expect(text).toBe(isReal ? 'taken' : 'refused');
      }
});

it.each([
  ['2025-12-31T23:59:59Z', true],
  ['2025-12-31 23:59', true],
  ['2025-12-31T23:59:59.123+05:30', true],
  ['2025-12-31T24:00:00Z', false],
  ['2025-12-31T12:60:00Z', false],
  ['2025-12-31T12:00:61Z', false],
  ['2025-12-31T12:00:00+25:00', false],
  ['20251231', false],
])('%s: %s', (text, isTaken) => {
  expect(takes(text)).toBe(isTaken);
});
