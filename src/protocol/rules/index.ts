/** Every rule between the fields of a chat completion request: what no single field's schema can say. */
import { fault } from '../faults.ts';
import { beamRules } from './beam.ts';
import { contextShiftRules } from './context-shift.ts';
import { freeFormRules } from './free-form.ts';
import { promptRules } from './prompt.ts';
import { reportingRules } from './reporting.ts';
import type { ChatRule } from './rule.ts';
import { samplingRules } from './sampling.ts';
import { structuredRules } from './structured.ts';
import { toolRules } from './tools.ts';

const servingRules: readonly ChatRule[] = [
  {
    name: 'priority needs the priority policy',
    reads: ['priority'],
    isLimit: true,
    check: ({ priority }, { scheduling }) =>
      scheduling === 'fcfs' && (priority ?? 0) !== 0
        ? fault(['priority'], 'unsupported', '0: this runtime does not use priority scheduling', priority)
        : null,
  },
];

/** Adapters of one request at most: each takes part in every product. */
const MAX_ADAPTERS = 16;

const adapterRules: readonly ChatRule[] = [
  {
    name: 'an adapter has a model or a file',
    reads: ['adapters'],
    check: ({ adapters }) =>
      (adapters ?? []).flatMap(({ model, file }, i) =>
        ((model ?? null) === null) === ((file ?? null) === null)
          ? [fault(['adapters', String(i)], 'conflict', 'either model or file', { model, file })]
          : [],
      ),
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

/** Every rule. */
export const chatRules: readonly ChatRule[] = [
  ...samplingRules,
  ...reportingRules,
  ...promptRules,
  ...toolRules,
  ...servingRules,
  ...adapterRules,
  ...contextShiftRules,
  ...freeFormRules,
  ...structuredRules,
  ...beamRules,
];
