/** A header that names the recipient of a message, then tagged parameters -> calls, of Muse Glimmer. */
import { expect, type Family, NOT_A_CALL } from './context.ts';
import type { FormatRow } from './format-row.ts';
import { MAX_HEADER_LENGTH } from './harmony-calls.ts';
import { xmlCalls } from './xml-calls.ts';

/** Texts with a meaning around the messages of Muse Glimmer. */
export const MUSE = {
  start: '<|start|>',
  message: '<|message|>',
  endOfMessage: '<|eom|>',
  endOfTurn: '<|eot|>',
} as const;

const SECTION = '<atem:function_calls>';
const HEADER = `${MUSE.start}assistant to=`;

/** The parser of the parameters inside a message. */
const PARAMETERS = {
  sections: { begins: [SECTION], ends: ['</atem:function_calls>'] },
  callBegin: '<atem:invoke name="',
  nameEnd: '">',
  callEnd: '</atem:invoke>',
  parameterBegin: '<atem:parameter name="',
  keyEnd: '">',
  valueEnds: ['</atem:parameter>'],
};

/** The row of Muse Glimmer: each call is a message to its tool. Calls in a message to the user are quotations and count as text. */
export const atemRow: Pick<FormatRow, 'reads' | 'writes'> = {
  reads: atemCalls(),
  writes: {
    thoughts: {
      begin: ` to=self${MUSE.message}`,
      end: MUSE.endOfMessage,
      next: `${MUSE.start}assistant`,
    },
    begin: ' to=',
    name: 'plain',
    middle: [`${MUSE.message}${SECTION}\n${PARAMETERS.callBegin}`, { repeats: 'name' }, PARAMETERS.nameEnd],
    arguments: 'atem_xml',
    textArgument: (name) => [
      `${PARAMETERS.parameterBegin}${name}${PARAMETERS.keyEnd}`,
      PARAMETERS.valueEnds[0]!,
    ],
    end: `\n${PARAMETERS.callEnd}\n${PARAMETERS.sections.ends[0]}`,
    separator: `${MUSE.endOfMessage}${MUSE.start}assistant`,
    trigger: null,
    textBegin: ` to=user${MUSE.message}`,
  },
};

function atemCalls(): Family {
  const calls = xmlCalls(PARAMETERS);
  return {
    markers: [HEADER],
    literals: [HEADER, ...Object.values(MUSE), ...calls.literals],
    *read(context) {
      const { reader } = context;
      const isHeader = (yield* reader.until([MUSE.message], () => {}, MAX_HEADER_LENGTH)) !== null;
      if (!isHeader) throw NOT_A_CALL;
      yield* reader.space();
      yield* expect(reader, SECTION);
      yield* calls.read(context, SECTION);
      yield* reader.takes(MUSE.endOfMessage);
    },
  };
}
