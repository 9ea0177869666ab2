/** Rules about fields with free-form data. It must be JSON data, so that later stages can walk it. */
import type { ErrorDetail } from '../../errors.ts';
import { fault } from '../faults.ts';
import { fileText } from '../file-text.ts';
import type { ContentPart } from '../generated/request-types.ts';
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
  'media_io_kwargs',
  'kv_transfer_params',
] as const;

export const freeFormRules: readonly ChatRule[] = [
  ...FIELDS.map(
    (field): ChatRule => ({
      name: `${field} is JSON data`,
      reads: [field],
      check: (request) => freeFormFault([field], request[field]),
    }),
  ),
  {
    name: 'message parts are JSON data, and files of text are text',
    reads: ['messages'],
    check: ({ messages }) => {
      const faults: ErrorDetail[] = [];
      const plain = replaceBytes(messages, () => '') as typeof messages;
      for (const [i, message] of plain.entries()) {
        const { content } = message;
        const tools = 'tools' in message ? message.tools : null;
        if (!Array.isArray(content) && !tools) continue;
        const loc = ['messages', String(i)];
        const found =
          freeFormFault([...loc, 'content'], content) ?? (tools && freeFormFault([...loc, 'tools'], tools));
        if (found) faults.push(found);
        else if (Array.isArray(content))
          faults.push(...fileFaults([...loc, 'content'], messages[i]!.content as Parts));
      }
      return faults;
    },
  },
];

/** Returns a fault if a value is not JSON data, otherwise null. */
export function freeFormFault(loc: readonly string[], value: unknown): ErrorDetail | null {
  const found = value === undefined ? null : jsonFault(value);
  return found ? fault([...loc, ...found.path], 'type', found.expected, found.input) : null;
}

type Parts = readonly ContentPart[];

function fileFaults(loc: readonly string[], parts: Parts): ErrorDetail[] {
  return parts.flatMap((part, k) => {
    if (typeof part === 'string' || part.type !== 'file') return [];
    const data = part.file.file_data;
    const read = fileText(data);
    if (!read || !('expected' in read)) return [];
    return [fault([...loc, String(k), 'file', 'file_data'], 'value', read.expected, data)];
  });
}
