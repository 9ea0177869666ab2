/** `call:NAME{key:value}` between two markers -> calls, in Gemma's format with quote markers around strings. */
import { expect, type Family, readName, takeEnd } from './context.ts';
import { type Dialect, readLiteralObject } from './literal.ts';

/** Returns the family of calls between `begin` and `end`, with `quote` around strings. */
export function gemmaCalls(begin: string, end: string, quote: string): Family {
  const dialect: Dialect = { quotes: [quote, '"'], hasEscapes: false, hasBareStrings: true };
  return {
    markers: [begin],
    literals: [begin, end, quote],
    *read({ reader, sink, tools }) {
      yield* reader.space();
      yield* expect(reader, 'call:');
      const { name } = yield* readName(reader, ['{']);
      sink.start(name);
      const root = tools.get(name);
      const place = { typed: { schema: root, root }, depth: 0 };
      yield* readLiteralObject(reader, dialect, (text) => sink.arguments(text), place);
      sink.end();
      yield* takeEnd(reader, [end]);
    },
  };
}
