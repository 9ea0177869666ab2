/** The types of tokens, limits of the source, and offsets -> lines and columns. */

/** Kinds of tokens. All operators have the kind `operator`; the value is their text. */
export type TokenKind =
  | 'data'
  | 'blockBegin'
  | 'blockEnd'
  | 'variableBegin'
  | 'variableEnd'
  | 'name'
  | 'string'
  | 'integer'
  | 'float'
  | 'operator'
  | 'end';

/** One token. `offset` counts UTF-16 units of the normalised source. */
export type Token = {
  readonly kind: TokenKind;
  /** The text of data, names and operators, the decoded value of strings, or the digits of numbers. */
  readonly value: string;
  readonly offset: number;
};

/** Limits of the template text that keep recursion bounded, here and in V8. */
export const SYNTAX_LIMITS = {
  maxTemplateCharacters: 1_000_000,
  maxTokens: 200_000,
  /** Nested brackets, blocks and operators. */
  maxNesting: 200,
  /** Links of one chain: `a.b.c`, `a + b + c`, `a|b|c`, elif. */
  maxChain: 500,
} as const;

/** A position in messages: line and column from 1, columns in characters. */
export type Position = { readonly line: number; readonly column: number; readonly sourceLine: string };

export function positionOf(source: string, offset: number): Position {
  const at = Math.min(offset, source.length);
  let line = 1;
  let start = 0;
  for (let next = source.indexOf('\n'); next >= 0 && next < at; next = source.indexOf('\n', start)) {
    line++;
    start = next + 1;
  }
  const end = source.indexOf('\n', start);
  return {
    line,
    column: [...source.slice(start, at)].length + 1,
    sourceLine: source.slice(start, end < 0 ? source.length : end),
  };
}

const NAMES: Readonly<Partial<Record<TokenKind, string>>> = {
  end: 'end of template',
  blockEnd: 'end of statement block',
  variableEnd: 'end of print statement',
  blockBegin: 'begin of statement block',
  variableBegin: 'begin of print statement',
};

export function describeToken(token: Token): string {
  return NAMES[token.kind] ?? token.value;
}
