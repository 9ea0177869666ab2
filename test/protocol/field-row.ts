/** Rows of cases for one field of a request. */
import type { ValidChatRequest } from '../../src/protocol/index.ts';

export type Row = {
  /** The field of the valid request that has the value. Default: the same field. */
  readonly as?: keyof ValidChatRequest;
  /** The value of an absent field. */
  readonly absent: unknown;
  /** Given value -> value of the valid request. */
  readonly good: readonly (readonly [unknown, unknown])[];
  /** Refused value -> what the message says after the field's name. */
  readonly bad: readonly (readonly [unknown, string])[];
  /** Other fields that the good values need. */
  readonly beside?: Record<string, unknown>;
};

export const same = (...values: unknown[]): (readonly [unknown, unknown])[] =>
  values.map((value) => [value, value]);

export const flag = (absent: boolean): Row => ({
  absent,
  good: same(true, false),
  bad: [
    [null, ': expected true or false, got null'],
    ['true', ': expected true or false, got "true"'],
    [1, ': expected true or false, got 1'],
  ],
});

export const flagOrNull = (absent: boolean, ofNull = absent): Row => ({
  absent,
  good: [...same(true, false), [null, ofNull]],
  bad: [['false', ': expected true or false or null, got "false"']],
});

/** A field that is refused whatever its value is. */
export const refused = (reason: string): Row => ({
  absent: null,
  good: same(null),
  bad: [
    [{ a: 1 }, `: expected no value: ${reason}, got an object`],
    [true, `: expected no value: ${reason}, got true`],
  ],
});

export const text = (absent: unknown, ...more: Row['good']): Row => ({
  absent,
  good: [...same('x'), [null, null], ...more],
  bad: [[5, ': expected a string or null, got 5']],
});

export const jsonObject = (absent: unknown): Row => ({
  absent,
  good: [...same({ a: [1, { b: null }] }, {}), [null, absent]],
  bad: [
    ['{}', ': expected an object or null, got "{}"'],
    [[1], ': expected an object or null, got a list of 1'],
    [{ a: [Number.NaN] }, '.a.0: expected a finite number, got NaN'],
    [{ a: () => 1 }, '.a: expected JSON data, got a function'],
  ],
});

export const penalty: Row = {
  absent: 0,
  good: [...same(-2, 0, 0.5, 2), [null, 0]],
  bad: [
    [-2.01, ': expected a number from -2 to 2 or null, got -2.01'],
    [2.01, ': expected a number from -2 to 2 or null, got 2.01'],
    ['1', ': expected a number from -2 to 2 or null, got "1"'],
    [Number.NaN, ': expected a number from -2 to 2 or null, got NaN'],
  ],
};

export const atLeastOne: Row = {
  absent: null,
  good: [...same(1, 4096), [null, null]],
  bad: [
    [0, ': expected an integer >= 1 or null, got 0'],
    [-1, ': expected an integer >= 1 or null, got -1'],
    [1.5, ': expected an integer >= 1 or null, got 1.5'],
    ['2', ': expected an integer >= 1 or null, got "2"'],
  ],
};
