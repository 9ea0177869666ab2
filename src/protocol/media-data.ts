/** Data of a request -> its bytes, within limits: bytes, a `data:` URI or base64. Nothing is fetched or read from disk. */
import { setImmediate } from 'node:timers/promises';
import { errorAt, type OnpolicyError } from '../errors.ts';
import { fileBytes } from './media-bytes.ts';

type SizeLimit = { readonly maxBytes: number };

/** Characters decoded in one turn of the event loop. A multiple of four, the size of a base64 group. */
const DECODED_LETTERS = 2 ** 20;
const PERCENT = 0x25;

/** Reads a sound from base64 text, a `data:` URI or bytes. `where` is its field. */
export async function readSound(
  file: string | Uint8Array,
  where: string,
  limits: SizeLimit,
): Promise<Uint8Array> {
  return requireData((await inlineBytes(file, true, where, limits))!, where);
}

/** Returns the bytes of a value that contains them, or null for other text. If `isBare`, text without a scheme is base64. */
export async function inlineBytes(
  value: unknown,
  isBare: boolean,
  where: string,
  limits: SizeLimit,
): Promise<Uint8Array | null> {
  const bytes = fileBytes(value)?.(); // pixels become a new file
  if (bytes) {
    checkSize(bytes.length, where, limits);
    return bytes === value ? bytes.slice() : bytes; // the caller may change them later
  }
  if (typeof value !== 'string') throw wrong(where, 'expected a data: URI or bytes');
  if (value.startsWith('data:')) return await fromDataUri(value, where, limits);
  return isBare ? await fromBase64(value, where, limits) : null;
}

/** Throws `INVALID_REQUEST` if the data is empty. */
export function requireData(bytes: Uint8Array, where: string): Uint8Array {
  if (bytes.length === 0) throw wrong(where, 'expected data, got none');
  return bytes;
}

async function fromDataUri(uri: string, where: string, limits: SizeLimit): Promise<Uint8Array> {
  const comma = uri.indexOf(',');
  if (comma < 0) throw wrong(where, 'expected a data: URI with a comma');
  const decode = uri.slice(0, comma).toLowerCase().endsWith(';base64') ? fromBase64 : fromPercentEncoded;
  return await decode(uri.slice(comma + 1), where, limits);
}

/** Decodes percent-encoded text: a character is a byte, and so is `%` with two digits. Works in pieces, like base64. */
async function fromPercentEncoded(text: string, where: string, limits: SizeLimit): Promise<Uint8Array> {
  checkSize(Math.ceil(text.length / 3), where, limits);
  const bytes = new Uint8Array(text.length);
  let size = 0;
  for (let at = 0, end = 0; at < text.length; ) {
    if (at > 0) await setImmediate();
    for (end += DECODED_LETTERS; at < Math.min(end, text.length); at++) {
      let code = text.charCodeAt(at);
      if (code === PERCENT) code = 16 * digit(text.charCodeAt(++at)) + digit(text.charCodeAt(++at));
      if (!(code < 256)) throw wrong(where, 'expected percent-encoded bytes');
      bytes[size++] = code;
    }
  }
  checkSize(size, where, limits);
  return bytes.slice(0, size);
}

/** Returns the value of a hexadecimal digit, or NaN for any other character. */
function digit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x61 + 10 : Number.NaN;
}

/** Decodes base64 strictly: invalid characters are a fault. Works in pieces, and yields to the event loop between them. */
async function fromBase64(text: string, where: string, limits: SizeLimit): Promise<Uint8Array> {
  checkSize(Math.floor((text.length * 3) / 4), where, limits);
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const bytes = Buffer.alloc(Math.floor(((text.length - padding) * 3) / 4));
  let size = 0;
  for (let at = 0; at < text.length; at += DECODED_LETTERS) {
    if (at > 0) await setImmediate();
    size += bytes.write(text.slice(at, at + DECODED_LETTERS), size, 'base64');
  }
  if (size !== bytes.length) throw wrong(where, 'expected base64');
  return bytes;
}

/** Throws `TOO_LARGE` above the limit. */
export function checkSize(bytes: number, where: string, { maxBytes }: SizeLimit): void {
  if (bytes <= maxBytes) return;
  throw errorAt(where, 'TOO_LARGE', `expected at most ${maxBytes} bytes, got ${bytes}`);
}

function wrong(where: string, reason: string): OnpolicyError {
  return errorAt(where, 'INVALID_REQUEST', reason);
}
