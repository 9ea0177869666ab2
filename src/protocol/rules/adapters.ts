/** Rules about adapters. */
import type { ErrorDetail } from '../../errors.ts';
import { fault } from '../faults.ts';
import type { Adapter } from '../generated/request-types.ts';
import type { ChatRule } from './rule.ts';

/** Maximum number of adapters per request. Each adds work to every matmul. */
const MAX_ADAPTERS = 16;

/** Returns the faults of adapters. Each must have exactly one source. */
export function adapterFaults(adapters: readonly Adapter[] | null | undefined): ErrorDetail[] {
  return (adapters ?? []).flatMap(({ model, file }, i) =>
    (model == null) === (file == null)
      ? [fault(['adapters', String(i)], 'conflict', 'either model or file', { model, file })]
      : [],
  );
}

export const adapterRules: readonly ChatRule[] = [
  {
    name: 'an adapter has a model or a file',
    reads: ['adapters'],
    check: ({ adapters }) => adapterFaults(adapters),
  },
  {
    name: 'adapters are few',
    reads: ['adapters'],
    check: ({ adapters }) =>
      (adapters?.length ?? 0) > MAX_ADAPTERS
        ? fault(['adapters'], 'length', `at most ${MAX_ADAPTERS} of them`, adapters)
        : null,
  },
];
