/** Bytes of media in messages, which only exist in process -> text in their place. */

/** The field of each media part that may hold bytes. */
const FIELDS = ['image_url', 'audio_url', 'input_audio', 'file'] as const;

type Loose = Readonly<Record<string, unknown>>;

/** The same messages with what `toText` makes of bytes. The same array when there are none. Any input is taken. */
export function replaceBytes(messages: unknown, toText: (bytes: Uint8Array) => string): unknown {
  if (!Array.isArray(messages)) return messages;
  let isChanged = false;
  const replaced = messages.map((message: unknown) => {
    const content = (message as Loose | null)?.['content'];
    if (!Array.isArray(content) || !content.some(holdsBytes)) return message;
    isChanged = true;
    return { ...(message as Loose), content: content.map((part: unknown) => replacePart(part, toText)) };
  });
  return isChanged ? replaced : messages;
}

/** A `data:` URI of some bytes. */
export function toDataUri(bytes: Uint8Array): string {
  return `data:;base64,${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')}`;
}

function holdsBytes(part: unknown): boolean {
  return FIELDS.some((field) => {
    const inner = (part as Loose | null)?.[field];
    return (
      typeof inner === 'object' &&
      inner !== null &&
      Object.values(inner).some((value) => value instanceof Uint8Array)
    );
  });
}

function replacePart(part: unknown, toText: (bytes: Uint8Array) => string): unknown {
  if (!holdsBytes(part)) return part;
  const replaced: Record<string, unknown> = { ...(part as Loose) };
  for (const field of FIELDS) {
    const inner = replaced[field];
    if (typeof inner !== 'object' || inner === null) continue;
    replaced[field] = Object.fromEntries(
      Object.entries(inner).map(([name, value]) => [
        name,
        value instanceof Uint8Array ? toText(value) : value,
      ]),
    );
  }
  return replaced;
}
