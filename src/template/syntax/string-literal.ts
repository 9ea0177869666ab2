/** The source of a string literal -> its text, by the escapes of Python. */
import { syntaxError } from '../python/py-error.ts';
import { escapeCode } from '../python/unicode.ts';

const SIMPLE: Readonly<Record<string, string>> = {
  '\\': '\\',
  "'": "'",
  '"': '"',
  '\n': '',
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

const HEX_DIGITS: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

/** Decodes the source between the quotes. Unknown escapes keep their backslash. */
export function decodeString(text: string, offset: number): string {
  if (!text.includes('\\')) return text;
  let result = '';
  let at = 0;
  while (at < text.length) {
    const backslash = text.indexOf('\\', at);
    if (backslash < 0) return result + text.slice(at);
    result += text.slice(at, backslash);
    const [piece, length] = decodeEscape(text, backslash, offset);
    result += piece;
    at = backslash + length;
  }
  return result;
}

function decodeEscape(text: string, at: number, offset: number): [piece: string, length: number] {
  const code = text[at + 1];
  if (code === undefined) return syntaxError('\\ at end of string', offset);
  const simple = SIMPLE[code];
  if (simple !== undefined) return [simple, 2];
  if (code >= '0' && code <= '7') {
    const digits = /^[0-7]{1,3}/.exec(text.slice(at + 1, at + 4))![0];
    return [String.fromCharCode(Number.parseInt(digits, 8)), 1 + digits.length];
  }
  const width = HEX_DIGITS[code];
  if (width !== undefined) {
    const digits = text.slice(at + 2, at + 2 + width);
    if (digits.length < width || !/^[0-9a-fA-F]+$/.test(digits))
      return syntaxError(`truncated \\${code}${'X'.repeat(width)} escape`, offset);
    const point = Number.parseInt(digits, 16);
    if (point > 0x10ffff) return syntaxError('illegal Unicode character', offset);
    return [String.fromCodePoint(point), 2 + width];
  }
  if (code === 'N')
    return syntaxError('\\N{...} escapes are not supported: write the character or \\uXXXX', offset);
  // Python first replaces characters beyond ASCII by escapes, so a backslash before such a character escapes that backslash.
  const point = text.codePointAt(at + 1)!;
  if (point > 0x7f) return [escapeCode(point), 1 + (point > 0xffff ? 2 : 1)];
  return [`\\${code}`, 2];
}
