/** Messages whose header ends with the marker of a call, then JSON -> calls, of Inkling. */
import type { FormatRow } from './format-row.ts';
import { jsonCalls } from './json-calls.ts';

const CONTENT = {
  thinking: '<|content_thinking|>',
  text: '<|content_text|>',
  call: '<|content_invoke_tool_json|>',
} as const;

/** Markers of Inkling's messages. */
export const INKLING = {
  message: '<|message_model|>',
  ...CONTENT,
  /** Markers that end a header, each with the kind of its message. */
  contents: [...Object.values(CONTENT), '<|content_invoke_tool_text|>'],
  endOfMessage: '<|end_message|>',
  endOfSampling: '<|content_model_end_sampling|>',
} as const;

/** The row of Inkling. The parser skips the headers, which only repeat the name. */
export const inklingRow: Pick<FormatRow, 'reads' | 'writes'> = {
  reads: jsonCalls({ begins: [INKLING.call], ends: [INKLING.endOfMessage], argumentsKey: 'args' }),
  writes: {
    thoughts: { begin: INKLING.thinking, end: INKLING.endOfMessage, next: INKLING.message },
    begin: '',
    name: 'plain',
    middle: [`${INKLING.call}{"name": "`, { repeats: 'name' }, '", "args": '],
    arguments: 'json',
    end: `}${INKLING.endOfMessage}`,
    separator: INKLING.message,
    trigger: null,
    textBegin: INKLING.text,
  },
};
