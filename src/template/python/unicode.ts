/** Characters -> Python's whitespace, classes, title case and code points, which differ from JavaScript's. */

/** Python's whitespace, as content of a character class. JavaScript's \s differs in six characters. */
export const WHITESPACE =
  '\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a' +
  '\u2028\u2029\u202f\u205f\u3000';
/** The characters of `WHITESPACE`. */
export const SPACES: ReadonlySet<string> = new Set(WHITESPACE);

const SURROGATE = /[\ud800-\udfff]/;

/** Returns true if every UTF-16 unit is one code point, so that indices agree with Python's. */
export function isPlain(text: string): boolean {
  return !SURROGATE.test(text);
}

/** `len(text)`: code points, not UTF-16 units. */
export function codePointLength(text: string): number {
  if (isPlain(text)) return text.length;
  let count = 0;
  for (const _ of text) count++;
  return count;
}

/** Compares two texts by code points: negative, zero or positive. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x === y) continue;
    // surrogates are code points above the basic plane
    const surrogateX = x >= 0xd800 && x <= 0xdfff;
    const surrogateY = y >= 0xd800 && y <= 0xdfff;
    if (surrogateX !== surrogateY) return surrogateX ? 1 : -1;
    return x - y;
  }
  return a.length - b.length;
}

/** Number signs that are letters, as content of a character class. */
export const NUMBER_SIGNS =
  '㐅㒃㠪㭍一七万三九二五亖亿什仟仨伍佰億兆兩八六十千卄卅卌叁参參叄四壱壹幺廾廿弌弍弎弐拾捌柒漆玖百肆萬貮貳贰阡陆陌陸零';
/** Digits that are not decimals: superscripts, circled digits and the like. */
export const OTHER_DIGITS =
  '\\u{b2}\\u{b3}\\u{b9}\\u{1369}-\\u{1371}\\u{19da}\\u{2070}\\u{2074}-\\u{2079}\\u{2080}-\\u{2089}\\u{2460}-\\u{2468}\\u{2474}-\\u{247c}\\u{2488}-\\u{2490}\\u{24ea}\\u{24f5}-\\u{24fd}\\u{24ff}\\u{2776}-\\u{277e}\\u{2780}-\\u{2788}\\u{278a}-\\u{2792}\\u{10a40}-\\u{10a43}\\u{10e60}-\\u{10e68}\\u{11052}-\\u{1105a}\\u{1f100}-\\u{1f10a}';
const UPPERCASE = /^\p{Uppercase}$/u;
const LOWERCASE = /^\p{Lowercase}$/u;
const CASED = /^[\p{Uppercase}\p{Lowercase}\p{Lt}]$/u;
const UNPRINTABLE = /^[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Zs}]$/u;
const IDENTIFIER = /^[\p{XID_Start}_]\p{XID_Continue}*$/u;

/** Returns true if `repr` writes the character without an escape. */
export function isPrintable(char: string): boolean {
  const code = char.codePointAt(0)!;
  if (code < 0x7f) return code >= 0x20;
  return !UNPRINTABLE.test(char);
}

/** Returns the escape that Python writes for a code point. */
export function escapeCode(code: number): string {
  const hex = code.toString(16);
  if (code < 0x100) return `\\x${hex.padStart(2, '0')}`;
  return code < 0x10000 ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`;
}

export function isIdentifier(text: string): boolean {
  return IDENTIFIER.test(text);
}

/** Two letters in one, in upper, title and lower case. */
const DIGRAPHS = ['Ǆǅǆ', 'Ǉǈǉ', 'Ǌǋǌ', 'Ǳǲǳ'];

/** Returns the title case of one code point, possibly several characters: ß becomes Ss. */
function titleChar(char: string): string {
  const digraph = DIGRAPHS.find((cases) => cases.includes(char));
  if (digraph !== undefined) return digraph[1]!;
  const [first = '', ...rest] = char.toUpperCase();
  return first + rest.join('').toLowerCase();
}

export function capitalize(text: string): string {
  const [first] = text;
  return first === undefined ? '' : titleChar(first) + text.slice(first.length).toLowerCase();
}

/** Returns `str.title()`: a letter after a character without case is upper case, other letters are lower case. */
export function titleText(text: string): string {
  let result = '';
  let previousIsCased = false;
  for (const char of text) {
    result += previousIsCased ? char.toLowerCase() : titleChar(char);
    previousIsCased = CASED.test(char);
  }
  return result;
}

export function casefold(text: string): string {
  return Array.from(text, (char) => char.toUpperCase().toLowerCase()).join('');
}

export function swapCase(text: string): string {
  let result = '';
  for (const char of text)
    result += UPPERCASE.test(char) ? char.toLowerCase() : LOWERCASE.test(char) ? char.toUpperCase() : char;
  return result;
}
