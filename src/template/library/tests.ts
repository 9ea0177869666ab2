/** The name of a test (`is`) -> its predicate. */
import { contains, equal, type OrderOperator, order } from '../python/compare.ts';
import { tryIterate, tryLength } from '../python/iterate.ts';
import { callStrMethod, STR_METHODS } from '../python/methods/str-methods.ts';
import { isNumber } from '../python/numbers.ts';
import { operate } from '../python/operators.ts';
import type { RenderState } from '../python/render-state.ts';
import { toText } from '../python/text.ts';
import {
  Dict,
  isList,
  Markup,
  normalKey,
  PyFloat,
  PyObject,
  Tuple,
  textOf,
  Undefined,
  type Value,
} from '../python/values.ts';
import { type Applied, Table } from './table.ts';

type Body = (state: RenderState, value: Value, other: Value) => boolean;

const tests = new Table<boolean>();

function define(names: string, body: Body, parameters = ''): void {
  tests.add(names, parameters, (state, value, [other]) => body(state, value, other ?? null));
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
  if (value instanceof PyObject) return value.isSubscriptable && value.length(state) !== undefined;
  return (
    isList(value) ||
    value instanceof Tuple ||
    value instanceof Undefined ||
    tryLength(state, value) !== undefined
  );
});
define(
  'callable',
  (_state, value) => (value instanceof PyObject && value.isCallable) || value instanceof Undefined,
);
define('escaped', (_state, value) => value instanceof Markup);
define('sameas', (_state, value, other) => value === other, 'other');
define('in', (state, value, container) => contains(state, container, value), 'seq');
const textTest =
  (method: string): Body =>
  (state, value) =>
    callStrMethod(state, STR_METHODS.get(method)!, toText(state, value), [], null) === true;
define('lower', textTest('islower'));
define('upper', textTest('isupper'));
define('eq equalto ==', equal, 'b /');
define('ne !=', (state, a, b) => !equal(state, a, b), 'b /');
const ordered =
  (operator: OrderOperator): Body =>
  (state, a, b) =>
    order(state, operator, a, b);
define('lt lessthan <', ordered('<'), 'b /');
define('le <=', ordered('<='), 'b /');
define('gt greaterthan >', ordered('>'), 'b /');
define('ge >=', ordered('>='), 'b /');

/** Adds the two tests that need the tables of filters and tests. */
export function makeTests(filterNames: {
  has(name: string): boolean;
}): ReadonlyMap<string, Applied<boolean>> {
  const isName =
    (names: { has(name: string): boolean }): Body =>
    (_state, value) => {
      normalKey(value); // Python looks the name up in a dict, so it has to be hashable
      return names.has(textOf(value) ?? '');
    };
  define('filter', isName(filterNames));
  define('test', isName(tests));
  return tests;
}
