/** A stream -> the same parts, and its entry in a map while it runs. */

/** Passes the parts of a stream on. `entryOf` names the stream by one of its first parts: it is in the map from there to its end. */
export async function* watched<Part, Entry>(
  stream: AsyncIterable<Part>,
  running: Map<string, Entry>,
  entryOf: (part: Part) => readonly [id: string, entry: Entry] | null,
): AsyncGenerator<Part, void, undefined> {
  let known: string | null = null;
  try {
    for await (const part of stream) {
      if (known === null) {
        const found = entryOf(part);
        if (found) running.set(...found);
        known = found?.[0] ?? null;
      }
      yield part;
    }
  } finally {
    if (known !== null) running.delete(known);
  }
}
