/** Rules about fields that hold data of the caller's own shape: it must be JSON data, so that later stages can walk it. */
import type { ErrorDetail } from '../../errors.ts';
import { fault } from '../faults.ts';
import { jsonFault } from '../json.ts';
import type { ChatRule } from './rule.ts';

const FIELDS = [
  'logit_bias',
  'inference_xargs',
  'stream_options',
  'documents',
  'tools',
  'response_format',
  'structured_outputs',
  'chat_template_kwargs',
  'mm_processor_kwargs',
  'kv_transfer_params',
] as const;

/** Rules about free-form data. */
export const freeFormRules: readonly ChatRule[] = [
  ...FIELDS.map(
    (field): ChatRule => ({
      name: `${field} is JSON data`,
      reads: [field],
      check: (request) => freeFormFault([field], request[field]),
    }),
  ),
  {
    name: 'message parts are JSON data',
    reads: ['messages'],
    check: ({ messages }) =>
      messages.flatMap((message, i) => {
        const free = [
          ['content', Array.isArray(message.content) ? message.content : null],
          ['tools', 'tools' in message ? message.tools : null],
        ] as const;
        return free.flatMap(([field, value]) =>
          value ? (freeFormFault(['messages', String(i), field], value) ?? []) : [],
        );
      }),
  },
];

function freeFormFault(loc: readonly string[], value: unknown): ErrorDetail | null {
  const found = value === undefined ? null : jsonFault(value);
  return found ? fault([...loc, ...found.path], 'type', found.expected, found.input) : null;
}
