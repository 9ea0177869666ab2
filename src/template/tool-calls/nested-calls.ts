/** Arguments as nested elements, whose markers have a prefix -> calls, of MiniMax M3. */
import type { Reading, TextReader } from '../text-reader.ts';
import { expect, type Family, NOT_A_CALL, readName, takeEnd } from './context.ts';
import { readValue } from './read-value.ts';
import { inside, isStringOnly, type Typed, typesOf } from './schema-types.ts';

const PREFIX = ']<]minimax[>[';
const SECTION = { begin: `${PREFIX}<tool_call>`, end: `${PREFIX}</tool_call>` };
const CALL = { begin: `${PREFIX}<invoke name="`, end: `${PREFIX}</invoke>` };
/** The name of an element of a list. */
const ITEM = 'item';
const MAX_DEPTH = 64;

/** Returns the family of `<invoke name="f">`, `<key>value</key>` for each argument, `</invoke>`, in a section. */
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
        yield* readMembers(reader, (json) => sink.arguments(json), CALL.end, {
          typed: { schema: root, root },
          depth: 0,
        });
        sink.end();
      } while (yield* takeEnd(reader, [CALL.begin]));
      yield* takeEnd(reader, [SECTION.end]);
    },
  };
}

type Emit = (json: string) => void;
type Place = { readonly typed: Typed; readonly depth: number };

/** Reads the members of an object up to `end`, or the items of a list. */
function* readMembers(reader: TextReader, emit: Emit, end: string, { typed, depth }: Place): Reading {
  if (depth > MAX_DEPTH) throw NOT_A_CALL;
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
      emit(isList ? '[' : '{');
    } else emit(', ');
    if (close === ']') yield* readNested(reader, emit, name, { typed: inside(typed, null), depth });
    else {
      emit(`${JSON.stringify(name)}: `);
      yield* readMember(reader, emit, name, { typed: inside(typed, name), depth });
    }
  }
  emit(close || (types?.has('array') && !types.has('object') ? '[]' : '{}'));
}

/** Reads the value of a member. Consecutive elements of the same name are a list, unless the value can only be a string. */
function* readMember(reader: TextReader, emit: Emit, name: string, place: Place): Reading {
  if (isStringOnly(typesOf(place.typed))) return yield* readNested(reader, emit, name, place);
  const values: string[] = [];
  do {
    let value = '';
    yield* readNested(
      reader,
      (json) => {
        value += json;
      },
      name,
      place,
    );
    values.push(value);
    yield* reader.space();
  } while (yield* reader.takes(`${PREFIX}<${name}>`));
  emit(values.length === 1 ? values[0]! : `[${values.join(', ')}]`);
}

/** Reads the value of an element whose begin marker is consumed, and its end marker. */
function* readNested(reader: TextReader, emit: Emit, name: string, { typed, depth }: Place): Reading {
  const end = `${PREFIX}</${name}>`;
  const types = typesOf(typed);
  if (yield* reader.takes(end)) return emit(types?.has('array') ? '[]' : types?.has('object') ? '{}' : '""');
  // elements inside are text if the schema allows a string
  if (!types?.has('string') && (yield* reader.takes(`${PREFIX}<`))) {
    reader.giveBack(`${PREFIX}<`);
    return yield* readMembers(reader, emit, end, { typed, depth: depth + 1 });
  }
  yield* readValue(reader, emit, [end], types);
}
