/** A name -> its filter, test or global. */
import { normalKey, textOf } from '../python/values.ts';
import { GLOBALS } from './globals.ts';
import { FILTERS } from './sequence-filters.ts';
import { TESTS } from './tests.ts';

for (const [name, names] of [
  ['filter', FILTERS],
  ['test', TESTS],
] as const)
  TESTS.add(name, '', (_state, value) => {
    normalKey(value); // Python looks the name up in a dict, so it has to be hashable
    return names.has(textOf(value) ?? '');
  });

export { FILTERS, GLOBALS, TESTS };
