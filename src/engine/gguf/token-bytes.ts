/** The header of a GGUF file -> the bytes of its tokens, in the form of vocabularies of constraints. */
import { isUtf8 } from 'node:buffer';
import { setImmediate } from 'node:timers/promises';
import type { GgufHeader } from './header.ts';

const KEY = 'tokenizer.ggml';
/** Number of tokens after which other work of the process gets a turn. */
const TURN = 2 ** 14;
/** Kinds of tokens, by their number in the file. */
const NORMAL = 1;
const USER_DEFINED = 4;
/** Kinds that never match text: unknown, control and unused tokens. */
const SPECIAL: readonly number[] = [2, 3, 5];
const ENDS = ['eos', 'eot', 'eom'].map((name) => `${KEY}.${name}_token_id`);

type TokenBytes = {
  readonly bytes: Uint8Array; // of all tokens, one after the other
  readonly offsets: Uint32Array; // (tokens + 1)
  readonly ends: Int32Array;
  readonly specials: Int32Array;
};

/** @throws OnpolicyError `MODEL_INVALID` if the file has no tokens */
export async function tokenBytes(header: GgufHeader): Promise<TokenBytes> {
  const tokens = header.need(`${KEY}.tokens`, header.array(`${KEY}.tokens`, 'string'));
  if (tokens.count === 0) header.refuse(`${KEY}.tokens`, 'at least one token', 0);
  const kinds = header.array(`${KEY}.token_type`, ['i32', 'u32'])?.numbers ?? [];
  const isByteLevel = header.text(`${KEY}.model`) === 'gpt2';
  const decode = isByteLevel ? fromByteLevel : fromSentencePiece;
  const offsets = new Uint32Array(tokens.count + 1);
  const specials: number[] = [];
  const parts: Buffer[] = [];
  for (const token of tokens.texts()) {
    const id = parts.length;
    const kind = kinds[id] ?? NORMAL;
    if (SPECIAL.includes(kind)) specials.push(id);
    const isLiteral = SPECIAL.includes(kind) || (kind === USER_DEFINED && isByteLevel);
    const bytes = isLiteral ? token : decode(token);
    parts.push(bytes);
    offsets[id + 1] = offsets[id]! + bytes.length;
    if (id % TURN === TURN - 1) await setImmediate();
  }
  const ends = ENDS.map((key) => header.number(key, { max: tokens.count - 1 }));
  return {
    bytes: new Uint8Array(Buffer.concat(parts)),
    offsets,
    ends: Int32Array.from(ends.filter((id) => id !== undefined)),
    specials: Int32Array.from(specials),
  };
}

/** Printable characters that stand for the 256 bytes in byte-level BPE: a byte that prints for itself, the others from U+0100 on. */
const BYTE_OF = byteOfStandIn();

function byteOfStandIn(): ReadonlyMap<string, number> {
  const bytes = Array.from({ length: 256 }, (_, byte) => byte);
  const prints = (byte: number): boolean =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  const hidden = bytes.filter((byte) => !prints(byte));
  return new Map([
    ...bytes.filter(prints).map((byte) => [String.fromCodePoint(byte), byte] as const),
    ...hidden.map((byte, i) => [String.fromCodePoint(256 + i), byte] as const),
  ]);
}

/** Other characters, and texts that are no UTF-8, stand for themselves. */
function fromByteLevel(token: Buffer): Buffer {
  if (!isUtf8(token)) return token;
  const bytes = [...token.toString()].flatMap((char) => BYTE_OF.get(char) ?? [...Buffer.from(char)]);
  return Buffer.from(bytes);
}

/** `<0x0A>` stands for a byte, U+2581 for a space. */
function fromSentencePiece(token: Buffer): Buffer {
  const text = token.toString('latin1');
  const byte = /^<0x([0-9A-F]{2})>$/.exec(text)?.[1];
  if (byte !== undefined) return Buffer.from(byte, 'hex');
  return Buffer.from(text.replaceAll('\xe2\x96\x81', ' '), 'latin1');
}
