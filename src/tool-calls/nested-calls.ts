/** Arguments as nested elements, each marker behind a prefix of its own -> calls, of MiniMax M3. */
import type { Reading } from '../common/index.ts';
import { type CallContext, expect, type Family, NOT_A_CALL, readName, takeEnd } from './context.ts';
import { inside, isStringOnly, type Typed, typesOf } from './parameter-values.ts';
import { readValue } from './read-value.ts';

const PREFIX = ']<]minimax[>[';
const SECTION = { begin: `${PREFIX}<tool_call>`, end: `${PREFIX}</tool_call>` };
const CALL = { begin: `${PREFIX}<invoke name="`, end: `${PREFIX}</invoke>` };
/** The name of an element of a list. */
const ITEM = 'item';
const MAX_DEPTH = 64;

/** `<invoke name="f">`, `<key>value</key>` for each argument, `</invoke>`, in a section. */
export function nestedCalls(): Family {
  return {
    markers: [SECTION.begin, CALL.begin],
    literals: [SECTION.begin, SECTION.end, CALL.begin, CALL.end, PREFIX],
    *read(context, marker) {
      const { reader, sink } = context;
      if (marker === SECTION.begin) {
        yield* reader.space();
        yield* expect(reader, CALL.begin);
      }
      do {
        const { name } = yield* readName(reader, ['">']);
        sink.start(name);
        const root = context.tools.get(name);
        yield* readMembers(context, CALL.end, { schema: root, root });
        sink.end();
      } while (yield* takeEnd(reader, [CALL.begin]));
      yield* takeEnd(reader, [SECTION.end]);
    },
  };
}

/** Reads the members of an object up to `end`, or the items of a list. */
function* readMembers(context: CallContext, end: string, typed: Typed, depth = 0): Reading {
  if (depth > MAX_DEPTH) throw NOT_A_CALL;
  const { reader, sink } = context;
  const types = typesOf(typed);
  let close = '';
  for (;;) {
    yield* reader.space();
    if (yield* reader.takes(end)) break;
    yield* expect(reader, `${PREFIX}<`);
    const { name } = yield* readName(reader, ['>']);
    if (close === '') {
      const isList = name === ITEM && depth > 0 && !(types?.has('object') && !types.has('array'));
      close = isList ? ']' : '}';
      sink.arguments(isList ? '[' : '{');
    } else sink.arguments(', ');
    if (close === '}') sink.arguments(`${JSON.stringify(name)}: `);
    yield* readNested(context, name, inside(typed, close === ']' ? null : name), depth);
  }
  sink.arguments(close || (types?.has('array') && !types.has('object') ? '[]' : '{}'));
}

/** Reads the value of an element whose begin is consumed, and its end. */
function* readNested(context: CallContext, name: string, typed: Typed, depth: number): Reading {
  const { reader, sink } = context;
  const end = `${PREFIX}</${name}>`;
  const types = typesOf(typed);
  const isString = isStringOnly(types);
  if (yield* reader.takes(end))
    return sink.arguments(types?.has('array') ? '[]' : types?.has('object') ? '{}' : '""');
  if (!isString && (yield* reader.takes(`${PREFIX}<`))) {
    reader.giveBack(`${PREFIX}<`);
    return yield* readMembers(context, end, typed, depth + 1);
  }
  yield* readValue(context, [end], types);
}
