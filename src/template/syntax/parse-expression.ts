/** Tokens -> expressions, with the precedences of Jinja2. */
import { PyFloat, type Value } from '../python/values.ts';
import type { Arguments, BinaryOperator, CompareOperator, Expression, NodeOf } from './nodes.ts';
import type { TokenStream } from './token-stream.ts';
import { describeToken, type Token } from './tokens.ts';

const PRECEDENCE_OR = 1;
const PRECEDENCE_NOT = 3;
const PRECEDENCE_COMPARE = 4;
const PRECEDENCE_CONCAT = 6;
/** Operators of each precedence from `or` up. All are left-associative, `**` as well. */
const PRECEDENCES = new Map(
  ['or', 'and', '', 'in == != < <= > >=', '+ -', '~', '* / // %', '**'].flatMap((operators, index) =>
    operators.split(' ').map((operator) => [operator, index + PRECEDENCE_OR] as const),
  ),
);

type TupleOptions = {
  readonly withCondition?: boolean;
  readonly endName?: string;
  readonly isParenthesised?: boolean;
};

/** Names of values, which cannot be assigned to. */
export const CONSTANTS = new Map<string, Value>([
  ['true', true],
  ['True', true],
  ['false', false],
  ['False', false],
  ['none', null],
  ['None', null],
]);

export class ExpressionParser {
  protected readonly stream: TokenStream;

  constructor(stream: TokenStream) {
    this.stream = stream;
  }

  /** Parses a list of items, read by `parse` and separated by commas. */
  protected items<T>(endName: string | undefined, parse: () => T): [items: T[], isTuple: boolean] {
    const { stream } = this;
    const items: T[] = [];
    for (;;) {
      const { kind } = stream.current;
      const isEnd = kind === 'variableEnd' || kind === 'blockEnd' || stream.isOperator(')');
      if (isEnd || (endName !== undefined && stream.isName(endName))) return [items, items.length > 0];
      items.push(parse());
      if (!stream.skipOperator(',')) return [items, items.length > 1];
    }
  }

  /** Parses a name, a constant or an expression in brackets, with the attributes, items and calls that follow. */
  protected parsePrimary(): Expression {
    return this.#postfix(this.#primary());
  }

  parseExpression(): Expression {
    return this.stream.nested(() => this.#condition());
  }

  /** Parses an expression, or a tuple of expressions separated by commas. */
  parseTuple({ withCondition = true, endName, isParenthesised = false }: TupleOptions = {}): Expression {
    const start = this.stream.current;
    const [items, isTuple] = this.items(endName, () =>
      withCondition ? this.parseExpression() : this.stream.nested(() => this.#operation(PRECEDENCE_OR)),
    );
    if (!isTuple) {
      if (items.length > 0) return items[0]!;
      if (!isParenthesised)
        this.stream.fail(`Expected an expression, got '${describeToken(this.stream.current)}'`);
    }
    return this.stream.node('Tuple', start, { items });
  }

  #condition(): Expression {
    const { stream } = this;
    let expression = this.#operation(PRECEDENCE_OR);
    for (let links = 0; stream.isName('if'); links++) {
      stream.checkChain(links);
      const token = stream.next();
      const cond = this.#operation(PRECEDENCE_OR);
      const otherwise = stream.skipName('else') ? stream.nested(() => this.#condition()) : null;
      expression = stream.node('InlineIf', token, { cond, body: expression, otherwise });
    }
    return expression;
  }

  /** Parses operands and operators of at least the precedence `minimum`, left-associative. */
  #operation(minimum: number): Expression {
    const { stream } = this;
    let left = minimum <= PRECEDENCE_NOT && stream.isName('not') ? this.#not() : this.#unary(true);
    for (let links = 0; ; links++) {
      const precedence = this.#precedence();
      if (precedence < minimum) return left;
      stream.checkChain(links);
      const token = stream.current;
      if (precedence === PRECEDENCE_COMPARE) left = this.#compare(left, token);
      else if (precedence === PRECEDENCE_CONCAT) left = this.#concat(left, token);
      else {
        stream.next();
        const right = this.#operation(precedence + 1);
        const { value } = token;
        if (value === 'and' || value === 'or')
          left = stream.node('Either', token, { left, right, operator: value });
        else left = stream.node('BinOp', token, { left, right, operator: value as BinaryOperator });
      }
    }
  }

  /** Returns the precedence of the current token, or -1 if it is not an operator. */
  #precedence(): number {
    const { kind, value } = this.stream.current;
    if (kind === 'operator') return PRECEDENCES.get(value) ?? -1;
    if (kind !== 'name') return -1;
    if (value === 'not') return this.stream.isNextName('in') ? PRECEDENCE_COMPARE : -1;
    return value === 'and' || value === 'or' || value === 'in' ? PRECEDENCES.get(value)! : -1;
  }

  #not(): Expression {
    const token = this.stream.next();
    return this.stream.nested(() =>
      this.stream.node('Not', token, { target: this.#operation(PRECEDENCE_NOT) }),
    );
  }

  #compare(first: Expression, token: Token): Expression {
    const { stream } = this;
    const operands: { operator: CompareOperator; value: Expression }[] = [];
    while (this.#precedence() === PRECEDENCE_COMPARE) {
      stream.checkChain(operands.length);
      let operator = stream.next().value;
      if (operator === 'not') {
        stream.next();
        operator = 'not in';
      }
      operands.push({
        operator: operator as CompareOperator,
        value: this.#operation(PRECEDENCE_COMPARE + 1),
      });
    }
    return stream.node('Compare', token, { first, operands });
  }

  #concat(first: Expression, token: Token): Expression {
    const items = [first];
    while (this.stream.skipOperator('~')) {
      this.stream.checkChain(items.length);
      items.push(this.#operation(PRECEDENCE_CONCAT + 1));
    }
    return this.stream.node('Concat', token, { items });
  }

  #unary(withFilters: boolean): Expression {
    const { stream } = this;
    const token = stream.current;
    let expression: Expression;
    if (stream.isOperator('-') || stream.isOperator('+')) {
      stream.next();
      const target = stream.nested(() => this.#unary(false));
      expression = stream.node('UnaryOp', token, { target, operator: token.value as '+' | '-' });
    } else expression = this.#primary();
    expression = this.#postfix(expression);
    return withFilters ? this.#filtersAndTests(expression) : expression;
  }

  #primary(): Expression {
    const { stream } = this;
    const token = stream.current;
    switch (token.kind) {
      case 'name': {
        stream.next();
        const constant = CONSTANTS.get(token.value);
        if (constant !== undefined) return stream.node('Literal', token, { value: constant });
        return stream.node('Symbol', token, { name: token.value });
      }
      case 'string': {
        let text = '';
        while (stream.current.kind === 'string') text += stream.next().value;
        return stream.node('Literal', token, { value: text });
      }
      case 'integer':
      case 'float':
        stream.next();
        return stream.node('Literal', token, { value: this.#number(token) });
      case 'operator':
        if (token.value === '(') return stream.nested(() => this.#parenthesis());
        if (token.value === '[') return stream.nested(() => this.#list());
        if (token.value === '{') return stream.nested(() => this.#dict());
    }
    return stream.fail(`unexpected '${describeToken(token)}'`);
  }

  #number(token: Token): Value {
    const text = token.value.replaceAll('_', '');
    if (token.kind === 'float') return new PyFloat(Number(text));
    if (/^\d+$/.test(text) && text.length > 4300)
      this.stream.fail('Exceeds the limit (4300 digits) for integer string conversion', token);
    if (text.length > 3500) this.stream.fail('the number is too large', token);
    const value = BigInt(/^0\d/.test(text) ? '0' : text);
    return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  }

  #parenthesis(): Expression {
    this.stream.next();
    const expression = this.parseTuple({ isParenthesised: true });
    this.stream.expectOperator(')');
    return expression;
  }

  /** Reads items up to and including a closing bracket. A comma may follow the last item. */
  #upTo(close: string, readItem: () => void): void {
    const { stream } = this;
    for (let isFirst = true; !stream.isOperator(close); isFirst = false) {
      if (!isFirst) stream.expectOperator(',');
      if (!isFirst && stream.isOperator(close)) break;
      readItem();
    }
    stream.next();
  }

  #list(): Expression {
    const token = this.stream.next();
    const items: Expression[] = [];
    this.#upTo(']', () => items.push(this.parseExpression()));
    return this.stream.node('Array', token, { items });
  }

  #dict(): Expression {
    const token = this.stream.next();
    const pairs: { key: Expression; value: Expression }[] = [];
    this.#upTo('}', () => {
      const key = this.parseExpression();
      this.stream.expectOperator(':');
      pairs.push({ key, value: this.parseExpression() });
    });
    return this.stream.node('Dict', token, { pairs });
  }

  #postfix(start: Expression): Expression {
    let expression = start;
    for (let links = 0; this.stream.current.kind === 'operator'; links++) {
      const { value } = this.stream.current;
      if (value !== '.' && value !== '[' && value !== '(') break;
      this.stream.checkChain(links);
      expression = value === '(' ? this.#call(expression) : this.#subscript(expression);
    }
    return expression;
  }

  #filtersAndTests(start: Expression): Expression {
    let expression = start;
    for (let links = 0; ; links++) {
      const { kind, value } = this.stream.current;
      if (kind !== 'operator' && (kind !== 'name' || value !== 'is')) return expression;
      this.stream.checkChain(links);
      if (this.stream.isOperator('|')) expression = this.parseFilters(expression)!;
      else if (this.stream.isName('is')) expression = this.#test(expression);
      else if (this.stream.isOperator('(')) expression = this.#call(expression);
      else return expression;
    }
  }

  #subscript(target: Expression): Expression {
    const { stream } = this;
    const token = stream.next();
    if (token.value === '.') {
      const name = stream.next();
      if (name.kind === 'name') return stream.node('Attribute', name, { target, name: name.value });
      if (name.kind !== 'integer') stream.fail('expected name or number', name);
      const key = stream.node('Literal', name, { value: this.#number(name) });
      return stream.node('LookupVal', name, { target, key });
    }
    return stream.nested(() => this.#brackets(target, token));
  }

  /** Parses, after the opening bracket, `[key]`, `[a, b]`, `[start:stop:step]` or `[]`, whose key is the empty tuple. */
  #brackets(target: Expression, token: Token): Expression {
    const { stream } = this;
    if (stream.skipOperator(']'))
      return stream.node('LookupVal', token, { target, key: stream.node('Tuple', token, { items: [] }) });
    const start = stream.isOperator(':') ? null : this.parseExpression();
    if (stream.skipOperator(':')) {
      const part = (): Expression | null =>
        stream.isOperator(']') || stream.isOperator(':') ? null : this.parseExpression();
      const stop = part();
      const step = stream.skipOperator(':') ? part() : null;
      stream.expectOperator(']');
      return stream.node('Slice', token, { target, start, stop, step });
    }
    const items = [start!];
    while (!stream.isOperator(']')) {
      stream.expectOperator(',');
      items.push(this.parseExpression());
    }
    stream.next();
    const key = items.length === 1 ? start! : stream.node('Tuple', token, { items });
    return stream.node('LookupVal', token, { target, key });
  }

  #call(callee: Expression): Expression {
    return this.stream.node('FunCall', this.stream.current, { callee, args: this.#arguments() });
  }

  #arguments(): Arguments {
    return this.stream.nested(() => this.#argumentList());
  }

  #argumentList(): Arguments {
    const { stream } = this;
    const token = stream.expectOperator('(');
    const positional: Expression[] = [];
    const keywords: { name: string; value: Expression }[] = [];
    const names = new Set<string>();
    let spread: Expression | null = null;
    let spreadKeywords: Expression | null = null;
    const ensure = (isLegal: boolean): void => {
      if (!isLegal) stream.fail('invalid syntax for function call expression', token);
    };
    this.#upTo(')', () => {
      if (stream.skipOperator('*')) {
        ensure(spread === null && spreadKeywords === null);
        spread = this.parseExpression();
      } else if (stream.skipOperator('**')) {
        ensure(spreadKeywords === null);
        spreadKeywords = this.parseExpression();
      } else if (
        stream.current.kind === 'name' &&
        stream.following.kind === 'operator' &&
        stream.following.value === '='
      ) {
        ensure(spreadKeywords === null);
        const name = stream.next().value;
        stream.next();
        if (names.has(name)) stream.fail(`keyword argument repeated: ${name}`);
        names.add(name);
        keywords.push({ name, value: this.parseExpression() });
      } else {
        ensure(spread === null && spreadKeywords === null && keywords.length === 0);
        positional.push(this.parseExpression());
      }
    });
    return { positional, keywords, spread, spreadKeywords };
  }

  /** Parses `|name(args)|name…`. With `isInline` the first name has no bar. */
  parseFilters(start: Expression | null, isInline = false): NodeOf<'Filter'> | null {
    const { stream } = this;
    let target = start;
    let isFirst = isInline;
    for (let links = 0; isFirst || stream.isOperator('|'); links++) {
      stream.checkChain(links);
      if (!isFirst) stream.next();
      isFirst = false;
      const token = stream.expect('name');
      const args = stream.isOperator('(') ? this.#arguments() : NO_ARGUMENTS;
      target = stream.node('Filter', token, { target, name: token.value, args });
    }
    return target as NodeOf<'Filter'> | null;
  }

  #test(target: Expression): Expression {
    const { stream } = this;
    stream.next();
    const isNegated = stream.skipName('not');
    const token = stream.expect('name');
    let args: Arguments = NO_ARGUMENTS;
    const { kind } = stream.current;
    if (stream.isOperator('(')) args = this.#arguments();
    else if (
      kind === 'string' ||
      kind === 'integer' ||
      kind === 'float' ||
      stream.isOperator('[') ||
      stream.isOperator('{') ||
      (kind === 'name' && !stream.isName('else', 'or', 'and'))
    ) {
      if (stream.isName('is')) stream.fail('You cannot chain multiple tests with is');
      args = { ...NO_ARGUMENTS, positional: [this.parsePrimary()] };
    }
    const test = stream.node('Is', token, { target, name: token.value, args });
    return isNegated ? stream.node('Not', token, { target: test }) : test;
  }
}

const NO_ARGUMENTS: Arguments = { positional: [], keywords: [], spread: null, spreadKeywords: null };
