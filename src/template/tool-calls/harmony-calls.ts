/** harmony messages to `functions.NAME` -> calls. The reasoning parser has handled all other messages. */
import { type Family, NOT_A_CALL, readArgumentsToEnd, takeEnd } from './context.ts';
import type { FormatRow } from './format-row.ts';
import { NAMED } from './named-json.ts';

/** Markers of harmony. */
export const HARMONY = {
  start: '<|start|>',
  channel: '<|channel|>',
  constrain: '<|constrain|>',
  message: '<|message|>',
  end: '<|end|>',
  call: '<|call|>',
  return: '<|return|>',
} as const;

const CALL_ENDS = [HARMONY.call, HARMONY.end];

/** Maximum length of a header. */
export const MAX_HEADER_LENGTH = 512;

/** Returns the recipient in a header, or null for the user. */
export function harmonyRecipient(header: string): string | null {
  return / to=(.+?)(?=<\||\s|$)/.exec(header)?.[1] ?? null;
}

/** Returns the family of calls as messages with a tool as recipient. */
function harmonyCalls(): Family {
  return {
    markers: [`${HARMONY.start}assistant`, HARMONY.channel],
    literals: Object.values(HARMONY),
    *read(context, marker) {
      const { reader, sink } = context;
      let header: string = marker;
      const end = yield* reader.until(
        [HARMONY.message, HARMONY.end, HARMONY.return],
        (text) => {
          header += text;
        },
        MAX_HEADER_LENGTH,
      );
      const recipient = end === HARMONY.message ? harmonyRecipient(header) : null;
      const name = recipient?.replace(/^functions\./, '') ?? '';
      if (name === '' || (name === recipient && !context.tools.has(name))) throw NOT_A_CALL;
      sink.start(name);
      yield* reader.space();
      for (const one of CALL_ENDS) if (yield* reader.takes(one)) return sink.end(); // an empty message: no arguments
      yield* readArgumentsToEnd(context);
      yield* takeEnd(reader, CALL_ENDS);
    },
  };
}

/** The row of the format. */
export const harmonyRow: FormatRow = {
  reads: harmonyCalls(),
  writes: {
    ...NAMED,
    thoughts: {
      begin: `${HARMONY.channel}analysis${HARMONY.message}`,
      end: HARMONY.end,
      next: `${HARMONY.start}assistant`,
    },
    begin: `${HARMONY.channel}commentary to=functions.`,
    middle: [` ${HARMONY.constrain}json${HARMONY.message}`],
    end: '', // `<|call|>` ends the answer
    separator: null,
    trigger: null,
    textBegin: `${HARMONY.channel}final${HARMONY.message}`,
  },
  framesText: true,
  seenBy: [['<|channel|>', '<|message|>']],
};
