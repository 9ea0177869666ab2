/** A header that names whom a message is for, then tagged parameters -> calls, of Muse Glimmer. */
import type { Reading } from '../common/index.ts';
import { type CallContext, expect, type Family, NOT_A_CALL } from './context.ts';
import { MAX_HEADER_LENGTH } from './harmony-calls.ts';
import { xmlCalls } from './xml-calls.ts';

const SECTION = '<atem:function_calls>';
const TO = 'to=';
const HEADER = `<|start|>assistant ${TO}`;
const MESSAGE = '<|message|>';

/** Calls of Muse Glimmer: each is a message of its own. */
export function atemCalls(): Family {
  const calls = xmlCalls({
    sections: { begins: [SECTION], ends: ['</atem:function_calls>'] },
    callBegin: '<atem:invoke name="',
    nameEnd: '">',
    callEnd: '</atem:invoke>',
    parameterBegin: '<atem:parameter name="',
    keyEnd: '">',
    valueEnds: ['</atem:parameter>'],
  });
  function* readMessage(context: CallContext): Reading {
    const { reader } = context;
    if ((yield* reader.until([MESSAGE], () => {}, MAX_HEADER_LENGTH)) === null) throw NOT_A_CALL;
    yield* expect(reader, SECTION);
    yield* calls.read(context, SECTION);
    yield* reader.takes('<|eom|>');
  }
  return {
    markers: [HEADER, ...calls.markers],
    literals: [HEADER, MESSAGE, '<|eom|>', ...calls.literals],
    read: (context, marker) => (marker === HEADER ? readMessage(context) : calls.read(context, marker)),
    *readStart(context) {
      yield* context.reader.space();
      yield* expect(context.reader, TO);
      yield* readMessage(context);
    },
  };
}
