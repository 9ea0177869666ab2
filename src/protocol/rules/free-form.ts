/** Rules about fields that hold data of the caller's own shape: it must be JSON data, so that later stages can walk it. */
import type { ErrorDetail } from '../../errors.ts';
import { fault } from '../faults.ts';
import { jsonFault } from '../json.ts';
import { replaceBytes } from '../media-bytes.ts';
import type { ChatRule } from './rule.ts';

const FIELDS = [
  'inference_xargs',
  'stream_options',
  'documents',
  'tools',
  'functions',
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
    check: ({ messages }) => {
      const faults: ErrorDetail[] = [];
      const plain = replaceBytes(messages, () => '') as typeof messages;
      for (const [i, message] of plain.entries()) {
        const tools = 'tools' in message ? message.tools : null;
        const parts = Array.isArray(message.content) ? message.content : null;
        const found =
          (parts && freeFormFault(['messages', String(i), 'content'], parts)) ??
          (tools && freeFormFault(['messages', String(i), 'tools'], tools));
        if (found) faults.push(found);
      }
      return faults;
    },
  },
];

/** The fault of a value that is not JSON data, if it is none. */
export function freeFormFault(loc: readonly string[], value: unknown): ErrorDetail | null {
  const found = value === undefined ? null : jsonFault(value);
  return found ? fault([...loc, ...found.path], 'type', found.expected, found.input) : null;
}
