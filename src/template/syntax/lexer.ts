/** Template text -> tokens, by the rules of Jinja2 with trim_blocks and lstrip_blocks. Linear in the text. */
import { overBudget, syntaxError } from '../python/py-error.ts';
import { isIdentifier, SPACES, WHITESPACE } from '../python/unicode.ts';
import { decodeString } from './string-literal.ts';
import { SYNTAX_LIMITS, type Token, type TokenKind } from './tokens.ts';

const SPACE = `[${WHITESPACE}]`;
const FLOAT = /(?:\d+_)*\d+(?:(?:\.(?:\d+_)*\d+)?[eE][+-]?(?:\d+_)*\d+|\.(?:\d+_)*\d+)/y;
const INTEGER = /0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0[xX](?:_?[0-9a-fA-F])+|[1-9](?:_?\d)*|0(?:_?0)*/y;
/** Names in ASCII. The full pattern takes milliseconds to build and is used only for other names. */
const ASCII_NAME = /[A-Za-z0-9_]+(?![A-Za-z0-9_\u0080-\uffff])/y;
const NAME = /[\p{L}\p{N}\p{M}\p{Pc}\u00b7\u0387\u2118\u212e\u309b\u309c]+/uy;
const WORD_START = /[A-Za-z_]/;
const OPERATOR = /\/\/|\*\*|==|!=|>=|<=|[-+/*%~[\](){}><=.:|,;]/y;
const RAW_BEGIN = new RegExp(`\\{%[-+]?${SPACE}*raw${SPACE}*(?:-%\\}${SPACE}*|%\\})`, 'y');
const RAW_END = new RegExp(`${SPACE}*endraw${SPACE}*(?:\\+%\\}|-%\\}${SPACE}*|%\\}\\n?)`, 'y');
const TAG_START = /\{[{%#]/g;
const CLOSERS: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' };

/** Returns the normalised source: line ends are line feeds, and a final one is removed, as in Jinja2. */
export function normaliseSource(source: string): string {
  const text = source.includes('\r') ? source.replace(/\r\n?/g, '\n') : source;
  return text.endsWith('\n') ? text.slice(0, -1) : text;
}

export function tokenize(source: string): Token[] {
  if (source.length > SYNTAX_LIMITS.maxTemplateCharacters)
    overBudget('characters of the template', SYNTAX_LIMITS.maxTemplateCharacters);
  return new Lexer(source).run();
}

class Lexer {
  readonly #source: string;
  readonly #tokens: Token[] = [];
  #at = 0;
  /** True if the last match ended with a line feed, so that the next tag starts a line. */
  #isLineStart = true;

  constructor(source: string) {
    this.#source = source;
  }

  run(): Token[] {
    while (this.#at < this.#source.length) this.#root();
    this.#push('end', '', this.#source.length);
    return this.#tokens;
  }

  #push(kind: TokenKind, value: string, offset: number): void {
    if (this.#tokens.length >= SYNTAX_LIMITS.maxTokens)
      overBudget('tokens of the template', SYNTAX_LIMITS.maxTokens);
    this.#tokens.push({ kind, value, offset });
  }

  /** Reads text up to and including the next tag. */
  #root(): void {
    const source = this.#source;
    const start = this.#at;
    TAG_START.lastIndex = start;
    const tag = TAG_START.exec(source)?.index;
    if (tag === undefined) {
      this.#push('data', source.slice(start), start);
      this.#at = source.length;
      return;
    }
    const kind = source[tag + 1]!;
    const sign = this.#sign(tag);
    this.#data(start, tag, sign, kind === '{');
    RAW_BEGIN.lastIndex = tag;
    const raw = kind === '%' ? RAW_BEGIN.exec(source) : null;
    if (raw !== null) {
      this.#moveTo(tag + raw[0].length);
      this.#raw();
      return;
    }
    this.#moveTo(tag + 2 + sign.length);
    if (kind === '#') this.#comment(tag);
    else if (kind === '%') this.#tag(tag, 'block', '%}');
    else this.#tag(tag, 'variable', '}}');
  }

  #sign(tag: number): string {
    const sign = this.#source[tag + 2];
    return sign === '-' || sign === '+' ? sign : '';
  }

  #moveTo(at: number): void {
    this.#isLineStart = this.#source[at - 1] === '\n';
    this.#at = at;
  }

  /** Pushes the text before a tag, stripped by the tag's sign and lstrip_blocks. */
  #data(start: number, end: number, sign: string, isVariable: boolean): void {
    const source = this.#source;
    let stop = end;
    if (sign === '-') {
      while (stop > start && SPACES.has(source[stop - 1]!)) stop--;
    } else if (sign === '' && !isVariable) {
      const isBlank = (at: number): boolean => source[at] !== '\n' && SPACES.has(source[at]!);
      let line = end;
      while (line > start && isBlank(line - 1)) line--;
      if (line > start ? source[line - 1] === '\n' : this.#isLineStart) stop = line;
    }
    if (stop > start) this.#push('data', source.slice(start, stop), start);
  }

  #skipSpaces(at: number): number {
    let end = at;
    while (end < this.#source.length && SPACES.has(this.#source[end]!)) end++;
    return end;
  }

  #comment(tag: number): void {
    if (this.#at >= this.#source.length) return; // Jinja2 accepts an opening mark at the end of the text
    const close = this.#source.indexOf('#}', this.#at);
    if (close < 0) syntaxError('Missing end of comment tag', tag);
    let end = close + 2;
    const sign = close > this.#at ? this.#source[close - 1] : '';
    if (sign === '-') end = this.#skipSpaces(end);
    else if (sign !== '+' && this.#source[end] === '\n') end++;
    this.#moveTo(end);
  }

  #raw(): void {
    const source = this.#source;
    const start = this.#at;
    if (start >= source.length) return;
    for (let tag = source.indexOf('{%', start); tag >= 0; tag = source.indexOf('{%', tag + 2)) {
      const sign = this.#sign(tag);
      RAW_END.lastIndex = tag + 2 + sign.length;
      const match = RAW_END.exec(source);
      if (match === null) continue;
      this.#data(start, tag, sign, false);
      this.#moveTo(tag + 2 + sign.length + match[0].length);
      return;
    }
    syntaxError('Missing end of raw directive', start);
  }

  /** Reads the tokens of a tag up to its closing mark, which is ignored inside brackets. */
  #tag(tag: number, kind: 'block' | 'variable', mark: '%}' | '}}'): void {
    this.#push(`${kind}Begin`, this.#source.slice(tag, tag + 2), tag);
    const open: string[] = [];
    for (;;) {
      const at = this.#skipSpaces(this.#at);
      this.#at = at;
      if (at >= this.#source.length) return; // the parser reports the missing mark
      const end = open.length === 0 ? this.#afterMark(mark, at) : -1;
      if (end >= 0) {
        this.#push(`${kind}End`, mark, at);
        this.#moveTo(end);
        return;
      }
      this.#token(at, open);
    }
  }

  /** Returns the offset of the text after a closing mark, or -1 if the mark does not come next. */
  #afterMark(mark: '%}' | '}}', at: number): number {
    const source = this.#source;
    if (source.startsWith(`-${mark}`, at)) return this.#skipSpaces(at + 3);
    if (mark === '%}' && source.startsWith('+%}', at)) return at + 3;
    if (!source.startsWith(mark, at)) return -1;
    return mark === '%}' && source[at + 2] === '\n' ? at + 3 : at + 2;
  }

  #match(pattern: RegExp, at: number): string | null {
    pattern.lastIndex = at;
    return pattern.exec(this.#source)?.[0] ?? null;
  }

  #token(at: number, open: string[]): void {
    const source = this.#source;
    const code = source.charCodeAt(at);
    if (code >= 48 && code <= 57) {
      const float = source[at - 1] === '.' ? null : this.#match(FLOAT, at);
      return this.#take(float === null ? 'integer' : 'float', float ?? this.#match(INTEGER, at)!, at);
    }
    if (code === 34 || code === 39) return this.#string(at);
    const plainName = this.#match(ASCII_NAME, at);
    if (plainName !== null) return this.#take('name', plainName, at);
    const name = code >= 0x80 || WORD_START.test(source[at]!) ? this.#match(NAME, at) : null;
    if (name !== null) {
      if (!isIdentifier(name)) syntaxError('Invalid character in identifier', at);
      return this.#take('name', name, at);
    }
    const operator =
      this.#match(OPERATOR, at) ??
      syntaxError(`unexpected char '${String.fromCodePoint(source.codePointAt(at)!)}'`, at);
    this.#balance(operator, at, open);
    this.#take('operator', operator, at);
  }

  /** Pushes a token whose value is its source text. */
  #take(kind: TokenKind, value: string, at: number): void {
    this.#push(kind, value, at);
    this.#at = at + value.length;
  }

  #balance(operator: string, at: number, open: string[]): void {
    const closer = CLOSERS[operator];
    if (closer !== undefined) open.push(closer);
    else if (operator === ')' || operator === ']' || operator === '}') {
      const expected = open.pop();
      if (expected === undefined) syntaxError(`unexpected '${operator}'`, at);
      if (expected !== operator) syntaxError(`unexpected '${operator}', expected '${expected}'`, at);
    }
  }

  #string(at: number): void {
    const source = this.#source;
    const quote = source[at]!;
    let end = at + 1;
    while (end < source.length && source[end] !== quote) end += source[end] === '\\' ? 2 : 1;
    if (end >= source.length) syntaxError(`unexpected char ${quote === "'" ? `"'"` : `'"'`}`, at);
    this.#push('string', decodeString(source.slice(at + 1, end), at), at);
    this.#at = end + 1;
  }
}
