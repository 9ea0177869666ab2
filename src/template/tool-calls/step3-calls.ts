/** Tagged calls, each between two markers, in a section -> calls, of Step 3. */
import type { Reading } from '../text-reader.ts';
import { type CallContext, type Family, NOT_A_CALL, takeEnd } from './context.ts';
import { xmlCalls } from './xml-calls.ts';

const SECTION = { begin: '<｜tool_calls_begin｜>', end: '<｜tool_calls_end｜>' };
const CALL = { begin: '<｜tool_call_begin｜>', end: '<｜tool_call_end｜>' };
const SEPARATOR = '<｜tool_sep｜>';
const INVOKE = '<steptml:invoke name="';
/** Maximum length of the text between the begin marker of a call and its tag. */
const MAX_PREFIX_LENGTH = 512;

/** Returns the family of `<steptml:invoke name="f">` with parameters. The name may also precede it. */
export function step3Calls(): Family {
  const calls = xmlCalls({
    callBegin: INVOKE,
    nameEnd: '">',
    callEnd: '</steptml:invoke>',
    parameterBegin: '<steptml:parameter name="',
    keyEnd: '">',
    valueEnds: ['</steptml:parameter>'],
  });
  function* readCall(context: CallContext): Reading {
    const { reader } = context;
    const found = yield* reader.until([INVOKE, CALL.end, SECTION.end], () => {}, MAX_PREFIX_LENGTH);
    if (found !== INVOKE) throw NOT_A_CALL;
    yield* calls.read(context, INVOKE);
    yield* takeEnd(reader, [CALL.end]);
    yield* takeEnd(reader, [SEPARATOR]);
  }
  return {
    markers: [SECTION.begin, CALL.begin, INVOKE],
    literals: [SECTION.begin, SECTION.end, CALL.begin, CALL.end, SEPARATOR, ...calls.literals],
    *read(context, marker) {
      if (marker === INVOKE) context.reader.giveBack(INVOKE);
      do yield* readCall(context);
      while (yield* takeEnd(context.reader, [CALL.begin]));
      yield* takeEnd(context.reader, [SECTION.end]);
    },
  };
}
