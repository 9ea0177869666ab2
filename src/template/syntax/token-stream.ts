/** Tokens -> a cursor for the parser, which also makes nodes with their position. */
import { overBudget, syntaxError } from '../python/py-error.ts';
import { createNode, type NodeFields, type NodeOf } from './nodes.ts';
import { describeToken, SYNTAX_LIMITS, type Token, type TokenKind } from './tokens.ts';

export class TokenStream {
  readonly #tokens: readonly Token[];
  #at = 0;
  #nesting = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  get current(): Token {
    return this.#tokens[this.#at]!;
  }
  get following(): Token {
    return this.#tokens[Math.min(this.#at + 1, this.#tokens.length - 1)]!;
  }
  /** Returns the current token and moves on; stays at the end token. */
  next(): Token {
    const token = this.current;
    if (token.kind !== 'end') this.#at++;
    return token;
  }
  isOperator(value: string): boolean {
    const token = this.current;
    return token.kind === 'operator' && token.value === value;
  }
  isNextName(value: string): boolean {
    const token = this.following;
    return token.kind === 'name' && token.value === value;
  }
  isName(...values: readonly string[]): boolean {
    return this.current.kind === 'name' && values.includes(this.current.value);
  }
  skipOperator(value: string): boolean {
    if (!this.isOperator(value)) return false;
    this.next();
    return true;
  }
  skipName(value: string): boolean {
    if (!this.isName(value)) return false;
    this.next();
    return true;
  }
  expectOperator(value: string): Token {
    if (!this.isOperator(value)) this.#unexpected(value);
    return this.next();
  }
  expectName(value: string): Token {
    if (!this.isName(value)) this.#unexpected(value);
    return this.next();
  }
  expect(kind: TokenKind): Token {
    if (this.current.kind !== kind) this.#unexpected(describeToken({ kind, value: kind, offset: 0 }));
    return this.next();
  }

  #unexpected(wanted: string): never {
    const found = this.current;
    if (found.kind === 'end') return this.fail(`unexpected end of template, expected '${wanted}'.`);
    return this.fail(`expected token '${wanted}', got '${describeToken(found)}'`);
  }
  fail(message: string, token: { readonly offset: number } = this.current): never {
    syntaxError(message, token.offset);
  }

  /** Runs a rule one nesting level deeper. */
  nested<T>(rule: () => T): T {
    if (++this.#nesting > SYNTAX_LIMITS.maxNesting)
      overBudget('nesting of the template', SYNTAX_LIMITS.maxNesting);
    const result = rule();
    this.#nesting--;
    return result;
  }
  /** Checks the length of a chain of operators, attributes or branches. */
  checkChain(length: number): void {
    if (length > SYNTAX_LIMITS.maxChain) overBudget('length of a chain', SYNTAX_LIMITS.maxChain);
  }

  node<K extends keyof NodeFields>(
    typename: K,
    token: { readonly offset: number },
    fields: NodeFields[K],
  ): NodeOf<K> {
    return createNode(typename, token.offset, fields);
  }
}
