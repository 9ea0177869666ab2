/** Bytes of protocol buffers <-> fields by number: the part of the format that Tinker's messages use. */
import { OnpolicyError } from '../../../errors.ts';

/** Most fields of one body, with those of the messages in it. */
const MOST_FIELDS = 1_000_000;

/** Content of a field: an integer, or the bytes of a text, a number of fixed size, a list or a message. */
type Value = number | Uint8Array;

/** Number of fields that a body may still have. */
type Budget = { left: number };

/** A message that was received. An absent field reads as empty, 0 or null. */
export class ProtobufMessage {
  readonly #values = new Map<number, Value[]>();
  readonly #budget: Budget;

  /** @throws OnpolicyError `INVALID_REQUEST` if the bytes are no message, `TOO_LARGE` for too many fields */
  constructor(bytes: Uint8Array, budget: Budget = { left: MOST_FIELDS }) {
    this.#budget = budget;
    const reader = new Reader(bytes);
    while (!reader.isAtEnd) {
      budget.left -= 1;
      if (budget.left < 0)
        throw new OnpolicyError('TOO_LARGE', `the body has more than ${MOST_FIELDS} fields`);
      const { number, value } = reader.field();
      const known = this.#values.get(number);
      if (known) known.push(value);
      else this.#values.set(number, [value]);
    }
  }

  has(number: number): boolean {
    return this.#values.has(number);
  }

  /** Returns the bytes of a field, the last one if it was sent several times. Null if it is absent. */
  bytes(number: number): Uint8Array | null {
    const value = this.#values.get(number)?.at(-1) ?? null;
    if (typeof value === 'number') throw noMessage();
    return value;
  }

  text(number: number): string {
    return Buffer.from(this.bytes(number) ?? []).toString();
  }

  integer(number: number): number {
    const value = this.#values.get(number)?.at(-1) ?? 0;
    if (typeof value !== 'number') throw noMessage();
    return value;
  }

  /** Returns a list of integers, which may be sent one by one or together. */
  integers(number: number): number[] {
    return (this.#values.get(number) ?? []).flatMap((value) => {
      if (typeof value === 'number') return value;
      const reader = new Reader(value);
      const all: number[] = [];
      while (!reader.isAtEnd) all.push(reader.varint());
      return all;
    });
  }

  /** Returns a number of 64 bits. */
  double(number: number): number {
    const bytes = this.bytes(number);
    if (bytes === null) return 0;
    if (bytes.length !== 8) throw noMessage();
    return viewOf(bytes).getFloat64(0, true);
  }

  messages(number: number): ProtobufMessage[] {
    return (this.#values.get(number) ?? []).map((value) => {
      if (typeof value === 'number') throw noMessage();
      return new ProtobufMessage(value, this.#budget);
    });
  }

  message(number: number): ProtobufMessage | null {
    const bytes = this.bytes(number);
    return bytes && new ProtobufMessage(bytes, this.#budget);
  }

  /** Returns the entries of a map from texts. Field 2 of an entry is its value. */
  entries(number: number): [key: string, entry: ProtobufMessage][] {
    return this.messages(number).map((entry) => [entry.text(1), entry]);
  }
}

class Reader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  field(): { readonly number: number; readonly value: Value } {
    const tag = this.varint();
    const number = Math.floor(tag / 8);
    if (number < 1) throw noMessage();
    switch (tag % 8) {
      case 0:
        return { number, value: this.varint() };
      case 1:
        return { number, value: this.#take(8) };
      case 2:
        return { number, value: this.#take(this.varint()) };
      case 5:
        return { number, value: this.#take(4) };
      default:
        throw noMessage();
    }
  }

  /** Reads an integer of up to 64 bits with a sign. */
  varint(): number {
    let [low, high] = [0, 0]; // 32 bits each
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) break;
      const bits = byte & 0x7f;
      if (shift < 28) low += bits * 2 ** shift;
      else if (shift === 28) {
        low += (bits & 0xf) * 2 ** 28;
        high += bits >> 4;
      } else high += bits * 2 ** (shift - 32);
      if (byte < 0x80) {
        const top = high % 2 ** 32;
        return (top >= 2 ** 31 ? top - 2 ** 32 : top) * 2 ** 32 + low;
      }
    }
    throw noMessage();
  }

  #take(count: number): Uint8Array {
    const from = this.#at;
    if (count < 0 || count > this.#bytes.length - from) throw noMessage();
    this.#at = from + count;
    return this.#bytes.subarray(from, this.#at);
  }
}

/** Returns the 32-bit floats in bytes. Null if their length does not fit. */
export function floatsIn(bytes: Uint8Array): number[] | null {
  if (bytes.length % 4 !== 0) return null;
  const view = viewOf(bytes);
  return Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
}

/** Returns the 32-bit integers in bytes. Null if their length does not fit. */
export function int32sIn(bytes: Uint8Array): number[] | null {
  if (bytes.length % 4 !== 0) return null;
  const view = viewOf(bytes);
  return Array.from({ length: bytes.length / 4 }, (_, i) => view.getInt32(4 * i, true));
}

/** Returns the 64-bit integers in bytes. Null if their length does not fit. */
export function int64sIn(bytes: Uint8Array): number[] | null {
  if (bytes.length % 8 !== 0) return null;
  const view = viewOf(bytes);
  return Array.from(
    { length: bytes.length / 8 },
    (_, i) => view.getInt32(8 * i + 4, true) * 2 ** 32 + view.getUint32(8 * i, true),
  );
}

/** The bytes of one field. */
export function varintField(number: number, value: number): Uint8Array {
  return Buffer.concat([varint(number * 8), varint(value)]);
}

export function bytesField(number: number, value: Uint8Array | string): Uint8Array {
  const bytes = typeof value === 'string' ? Buffer.from(value) : value;
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);
}

/** The bytes of a message from those of its fields. */
export function messageField(number: number, ...fields: readonly Uint8Array[]): Uint8Array {
  return bytesField(number, Buffer.concat(fields));
}

export function doubleField(number: number, value: number): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return Buffer.concat([varint(number * 8 + 1), bytes]);
}

/** The bytes of 32-bit floats, of 32-bit integers, and of 64-bit integers. */
export function floatBytes(values: readonly number[]): Uint8Array {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [i, value] of values.entries()) bytes.writeFloatLE(value, 4 * i);
  return bytes;
}

export function int32Bytes(values: readonly number[]): Uint8Array {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [i, value] of values.entries()) bytes.writeInt32LE(value, 4 * i);
  return bytes;
}

export function int64Bytes(values: readonly number[]): Uint8Array {
  const bytes = Buffer.alloc(8 * values.length);
  for (const [i, value] of values.entries()) bytes.writeBigInt64LE(BigInt(value), 8 * i);
  return bytes;
}

/** Returns the shortest bytes of an integer that is not negative. */
function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) + 0x80);
  bytes.push(rest);
  return Uint8Array.from(bytes);
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

function noMessage(): OnpolicyError {
  return new OnpolicyError('INVALID_REQUEST', 'the body is not a message of protocol buffers');
}
