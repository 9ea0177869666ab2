/** Bytes and pixels of media in messages, which exist only in process -> text in their place. */

/** A decoded picture, as a canvas gives it. */
export type Pixels = {
  /** (height, width, 4): red, green, blue and alpha, which has no effect. */
  readonly data: Uint8Array | Uint8ClampedArray;
  /** 1 to 65,535. */
  readonly width: number;
  /** 1 to 65,535. */
  readonly height: number;
};

/** The field of each media part that may hold bytes, in an object or a list. */
const FIELDS = ['image_url', 'audio_url', 'input_audio', 'file', 'video'] as const;
const MAX_SIDE = 65_535;

type Loose = Readonly<Record<string, unknown>>;

/** Returns the messages with their bytes replaced by `toText`, or the same array if they have none. Accepts any input. */
export function replaceBytes(messages: unknown, toText: (bytes: () => Uint8Array) => string): unknown {
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

/** Returns a `data:` URI of some bytes. */
export function toDataUri(bytes: () => Uint8Array): string {
  const { buffer, byteOffset, byteLength } = bytes();
  return `data:;base64,${Buffer.from(buffer, byteOffset, byteLength).toString('base64')}`;
}

/** Returns the bytes that a value holds, or a BMP file made of its pixels. Null if it has neither. */
export function fileBytes(value: unknown): (() => Uint8Array) | null {
  if (value instanceof Uint8Array) return () => value;
  return isPixels(value) ? () => toBitmap(value) : null;
}

function isPixels(value: unknown): value is Pixels {
  if (typeof value !== 'object' || value === null) return false;
  const { data, width, height } = value as Pixels;
  const isSide = (side: unknown): side is number =>
    Number.isInteger(side) && (side as number) > 0 && (side as number) <= MAX_SIDE;
  const isBytes = data instanceof Uint8Array || data instanceof Uint8ClampedArray;
  return isBytes && isSide(width) && isSide(height) && data.length === 4 * width * height;
}

/** Returns a BMP with 24 bits a pixel: rows from the bottom up, blue first, each row padded to four bytes. */
function toBitmap({ data, width, height }: Pixels): Uint8Array {
  const header = 54;
  const stride = Math.ceil((3 * width) / 4) * 4;
  const file = Buffer.alloc(header + stride * height);
  file.write('BM', 'latin1');
  for (const [at, value] of Object.entries({ 2: file.length, 10: header, 14: 40, 18: width, 22: height }))
    file.writeUInt32LE(value, Number(at));
  file.writeUInt16LE(1, 26); // planes
  file.writeUInt16LE(24, 28);
  for (let y = 0; y < height; y++) {
    let to = header + stride * (height - 1 - y);
    for (let from = 4 * width * y; from < 4 * width * (y + 1); from += 4) {
      file[to++] = data[from + 2]!;
      file[to++] = data[from + 1]!;
      file[to++] = data[from]!;
    }
  }
  return file;
}

function holdsBytes(part: unknown): boolean {
  return FIELDS.some((field) => {
    const inner = (part as Loose | null)?.[field];
    return (
      typeof inner === 'object' && inner !== null && Object.values(inner).some((value) => fileBytes(value))
    );
  });
}

function replacePart(part: unknown, toText: (bytes: () => Uint8Array) => string): unknown {
  if (!holdsBytes(part)) return part;
  const replaced: Record<string, unknown> = { ...(part as Loose) };
  const replace = (value: unknown): unknown => {
    const bytes = fileBytes(value);
    return bytes ? toText(bytes) : value;
  };
  for (const field of FIELDS) {
    const inner = replaced[field];
    if (Array.isArray(inner)) replaced[field] = inner.map(replace);
    else if (typeof inner === 'object' && inner !== null)
      replaced[field] = Object.fromEntries(
        Object.entries(inner).map(([name, value]) => [name, replace(value)]),
      );
  }
  return replaced;
}
