/** Bytes that come in pieces -> the characters they complete. A character is never split: its first bytes wait for its last. */

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** The incomplete bytes before the first piece: none. */
export const NO_BYTES: Uint8Array = new Uint8Array(0);

/**
 * The characters that further bytes complete, and the bytes (0 to 3) of one that is still open. Bytes that form no
 * character are U+FFFD; a byte order mark is a character.
 */
export function decodeWhole(before: Uint8Array, added: Uint8Array): { text: string; open: Uint8Array } {
  const bytes = before.length === 0 ? added : concat(before, added);
  const complete = bytes.length - openBytes(bytes);
  if (complete === bytes.length) return { text: decoder.decode(bytes), open: NO_BYTES };
  return { text: decoder.decode(bytes.subarray(0, complete)), open: bytes.slice(complete) };
}

/** Returns the rest at the end: U+FFFD for bytes of an incomplete character. */
export function decodeRest(open: Uint8Array): string {
  return open.length === 0 ? '' : decoder.decode(open);
}

function concat(a: Uint8Array, b: Uint8Array): Uint8Array {
  const joined = new Uint8Array(a.length + b.length);
  joined.set(a);
  joined.set(b, a.length);
  return joined;
}

/** Returns the number of bytes at the end that begin a character and do not complete it. */
function openBytes(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!;
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue; // inside a character
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return needed > back ? back : 0;
  }
  return 0;
}
