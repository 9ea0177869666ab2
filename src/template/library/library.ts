/** A name -> its filter, test or global. Templates cannot change the Maps. */

import type { Applied } from '../python/table.ts';
import { GLOBALS } from './globals.ts';
import { NUMBER_FILTERS } from './number-filters.ts';
import { makeSequenceFilters } from './sequence-filters.ts';
import { makeTests } from './tests.ts';
import { TEXT_FILTERS } from './text-filters.ts';

const filters = new Map<string, Applied>([...TEXT_FILTERS, ...NUMBER_FILTERS]);
const tests: ReadonlyMap<string, Applied<boolean>> = makeTests(filters);
for (const [name, filter] of makeSequenceFilters(
  (name) => filters.get(name),
  (name) => tests.get(name),
))
  filters.set(name, filter);

/** Name -> filter. */
export const FILTERS: ReadonlyMap<string, Applied> = filters;
/** Name -> test. */
export const TESTS = tests;
export { GLOBALS };
