/** All rules between the fields of a chat completion request, which the schema of a single field cannot express. */
import { fault } from '../faults.ts';
import { adapterRules } from './adapters.ts';
import { exclusionRules } from './exclusions.ts';
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
      scheduling !== 'priority' && (priority ?? 0) !== 0
        ? fault(['priority'], 'unsupported', '0: this runtime does not use priority scheduling', priority)
        : null,
  },
];

export const chatRules: readonly ChatRule[] = [
  ...samplingRules,
  ...reportingRules,
  ...promptRules,
  ...toolRules,
  ...servingRules,
  ...adapterRules,
  ...freeFormRules,
  ...structuredRules,
  ...exclusionRules,
];
