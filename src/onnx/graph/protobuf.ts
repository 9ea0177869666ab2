/** The bytes of protobuf messages <-> their fields. Files are read through a window, so that large tensors are not read. */
import fs from 'node:fs';

/** Wire types of fields. */
export const VARINT = 0;
const FIXED64 = 1;
export const BYTES = 2;
const FIXED32 = 5;

/** A field. Its bytes are `from` to `to`; for a number, `from` is its value. `start` is the position of its tag. */
export type Field = {
  readonly number: number;
  readonly kind: number;
  readonly start: number;
  readonly from: number;
  readonly to: number;
  readonly end: number;
};

/** Reads a file. Every method fails with a RangeError if the file is damaged. */
export class Reader {
  readonly size: number;
  readonly #descriptor: number;
  readonly #window = Buffer.alloc(1 << 16);
  #start = 0;
  #end = 0;

  constructor(descriptor: number, size: number) {
    this.#descriptor = descriptor;
    this.size = size;
  }

  /** Yields the fields of the message in these bytes. */
  *fields(from: number, to: number): Generator<Field> {
    for (let at = from; at < to; ) {
      const start = at;
      const tag = this.#varint(at);
      const [number, kind] = [Math.floor(tag.value / 8), tag.value % 8];
      if (kind === VARINT) {
        const { value, next } = this.#varint(tag.next);
        at = next;
        yield { number, kind, start, from: value, to: value, end: at };
        continue;
      }
      const length = kind === BYTES ? this.#varint(tag.next) : fixed(kind, tag.next);
      at = length.next + length.value;
      if (at > to) throw new RangeError('a field ends after its message');
      yield { number, kind, start, from: length.next, to: at, end: at };
    }
  }

  text({ from, to }: Field): string {
    return this.bytes(from, to).toString('utf8');
  }

  /** Returns a copy of these bytes of the file. */
  bytes(from: number, to: number): Buffer {
    const bytes = Buffer.allocUnsafe(to - from);
    if (from >= this.#start && to <= this.#end) {
      this.#window.copy(bytes, 0, from - this.#start, to - this.#start);
      return bytes;
    }
    if (fs.readSync(this.#descriptor, bytes, 0, bytes.length, from) !== bytes.length)
      throw new RangeError('the file ends early');
    return bytes;
  }

  /** Returns the numbers of a field with one or several. */
  numbers({ kind, from, to }: Field): number[] {
    if (kind === VARINT) return [from];
    const numbers: number[] = [];
    for (let at = from; at < to; ) {
      const { value, next } = this.#varint(at);
      numbers.push(value);
      at = next;
    }
    return numbers;
  }

  #varint(at: number): { value: number; next: number } {
    let value = 0;
    let high = 0n; // high bits of negative numbers, which have 64 bits
    for (let i = 0; i < 10; i++) {
      const byte = this.#byte(at + i);
      if (i < 7) value += (byte & 127) * 2 ** (7 * i);
      else high += BigInt(byte & 127) << BigInt(7 * i);
      if (byte >= 128) continue;
      return {
        value: high === 0n ? value : Number(BigInt.asIntN(64, high + BigInt(value))),
        next: at + i + 1,
      };
    }
    throw new RangeError('a number has no end');
  }

  #byte(at: number): number {
    if (at >= this.size) throw new RangeError('the file ends early');
    if (at < this.#start || at >= this.#end) {
      this.#start = at;
      this.#end = at + fs.readSync(this.#descriptor, this.#window, 0, this.#window.length, at);
    }
    return this.#window[at - this.#start]!;
  }
}

function fixed(kind: number, next: number): { value: number; next: number } {
  if (kind === FIXED64) return { value: 8, next };
  if (kind === FIXED32) return { value: 4, next };
  throw new RangeError('an unknown kind of field');
}

/** Returns a field with an integer, which may be negative. */
export function numberField(number: number, value: number): Buffer {
  return Buffer.from([...varint(number * 8 + VARINT), ...varint(BigInt.asUintN(64, BigInt(value)))]);
}

/** Returns a field with a 32-bit float. */
export function floatField(number: number, value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return Buffer.concat([Buffer.from(varint(number * 8 + FIXED32)), bytes]);
}

/** Returns a field with a text or a message. */
export function bytesField(number: number, value: string | Uint8Array): Buffer {
  const bytes = typeof value === 'string' ? Buffer.from(value) : value;
  return Buffer.concat([Buffer.from([...varint(number * 8 + BYTES), ...varint(bytes.length)]), bytes]);
}

function varint(value: number | bigint): number[] {
  const bytes: number[] = [];
  let rest = BigInt(value);
  for (; rest >= 128n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return [...bytes, Number(rest)];
}
