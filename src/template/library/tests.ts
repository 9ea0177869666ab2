/** The name of a test (`is`) -> its predicate. */
import { COMPARISONS, equal } from '../python/compare.ts';
import { tryIterate, tryLength } from '../python/iterate.ts';
import { STR_METHODS } from '../python/methods/str-methods.ts';
import { isNumber } from '../python/numbers.ts';
import { operate } from '../python/operators.ts';
import type { RenderState } from '../python/render-state.ts';
import { Table } from '../python/table.ts';
import { toText } from '../python/text.ts';
import { Dict, Markup, PyFloat, PyObject, textOf, Undefined, type Value } from '../python/values.ts';

type Body = (state: RenderState, value: Value, other: Value) => boolean;

export const TESTS = new Table<boolean>();

function define(names: string, body: Body, parameters = ''): void {
  TESTS.add(names, parameters, (state, value, [other]) => body(state, value, other ?? null));
}

const remainderIs =
  (divisor: number, wanted: number): Body =>
  (state, value) =>
    equal(state, operate(state, '%', value, divisor), wanted);
define('odd', remainderIs(2, 1));
define('even', remainderIs(2, 0));
define('divisibleby', (state, value, divisor) => equal(state, operate(state, '%', value, divisor), 0), 'num');
define('defined', (_state, value) => !(value instanceof Undefined));
define('undefined', (_state, value) => value instanceof Undefined);
define('none', (_state, value) => value === null);
define('boolean', (_state, value) => typeof value === 'boolean');
define('true', (_state, value) => value === true);
define('false', (_state, value) => value === false);
define('integer', (_state, value) => typeof value === 'number' || typeof value === 'bigint');
define('float', (_state, value) => value instanceof PyFloat);
define('number', (_state, value) => isNumber(value));
define('string', (_state, value) => textOf(value) !== undefined);
define('mapping', (_state, value) => value instanceof Dict);
define('iterable', (state, value) => tryIterate(state, value) !== undefined);
define('sequence', (state, value) => {
  if (value instanceof PyObject) return value.item !== undefined;
  return tryLength(state, value) !== undefined;
});
define('callable', (_state, value) =>
  value instanceof PyObject ? value.call !== undefined : value instanceof Undefined,
);
define('escaped', (_state, value) => value instanceof Markup);
define('sameas', (_state, value, other) => value === other, 'other');
define('in', COMPARISONS.in, 'seq');
for (const name of ['lower', 'upper']) {
  const method = STR_METHODS.get(`is${name}`)!;
  define(name, (state, value) => method(state, toText(state, value), [], null) === true);
}
for (const [names, operator] of [
  ['eq equalto ==', '=='],
  ['ne !=', '!='],
  ['lt lessthan <', '<'],
  ['le <=', '<='],
  ['gt greaterthan >', '>'],
  ['ge >=', '>='],
] as const)
  define(names, COMPARISONS[operator], 'b /');
