/** Tokens -> the tree of a template. */

import { tokenize } from './lexer.ts';
import type { Expression, NodeOf, Statement, Target } from './nodes.ts';
import { CONSTANTS, ExpressionParser } from './parse-expression.ts';
import { TokenStream } from './token-stream.ts';
import { describeToken, type Token } from './tokens.ts';

/** Parses a template. The source must be normalised. */
export function parse(source: string): NodeOf<'Root'> {
  return new StatementParser(new TokenStream(tokenize(source))).parseRoot();
}

/** Tags of Jinja2 that chat templates do not need, as there are no other templates to load and the output is not HTML. */
const UNSUPPORTED: ReadonlySet<string> = new Set(['include', 'import', 'from', 'extends', 'autoescape']);

class StatementParser extends ExpressionParser {
  /** Names of the tags that may end each open tag, innermost last. */
  readonly #endTags: (readonly string[])[] = [];

  readonly #rules: Readonly<Record<string, (token: Token) => Statement>> = Object.assign(
    Object.create(null),
    {
      if: (token: Token) => this.#parseIf(token),
      for: (token: Token) => this.#parseFor(token),
      set: (token: Token) => this.#parseSet(token),
      macro: (token: Token) => this.#parseMacro(token),
      call: (token: Token) => this.#parseCallBlock(token),
      filter: (token: Token) => this.#parseFilterBlock(token),
      with: (token: Token) => this.#parseWith(token),
      block: (token: Token) => this.#parseBlock(token),
      print: (token: Token) => this.#parsePrint(token),
      generation: (token: Token) =>
        this.stream.node('Generation', token, { body: this.#parseWholeBody('endgeneration') }),
      break: (token: Token) => this.stream.node('Break', token, {}),
      continue: (token: Token) => this.stream.node('Continue', token, {}),
    },
  );

  parseRoot(): NodeOf<'Root'> {
    const start = this.stream.current;
    const body = this.#parseUntil(null);
    return this.stream.node('Root', start, { body });
  }

  #parseUntil(endTags: readonly string[] | null): Statement[] {
    const { stream } = this;
    const body: Statement[] = [];
    let output: (Expression | NodeOf<'TemplateData'>)[] = [];
    let outputStart: Token = stream.current;
    const flush = (): void => {
      if (output.length > 0) body.push(stream.node('Output', outputStart, { children: output }));
      output = [];
    };
    if (endTags !== null) this.#endTags.push(endTags);
    for (;;) {
      const token = stream.current;
      if (output.length === 0) outputStart = token;
      if (token.kind === 'data') {
        stream.next();
        output.push(stream.node('TemplateData', token, { text: token.value }));
      } else if (token.kind === 'variableBegin') {
        stream.next();
        output.push(this.parseTuple());
        stream.expect('variableEnd');
      } else if (token.kind === 'blockBegin') {
        flush();
        stream.next();
        if (endTags !== null && stream.isName(...endTags)) break;
        body.push(stream.nested(() => this.#parseStatement()));
        stream.expect('blockEnd');
      } else break;
    }
    flush();
    if (stream.current.kind === 'end' && endTags !== null) this.#failUnclosed('Unexpected end of template');
    if (endTags !== null) this.#endTags.pop();
    return body;
  }

  /** Parses the body of a tag, up to the name of one of `endTags`. */
  #parseBody(...endTags: readonly string[]): Statement[] {
    this.stream.skipOperator(':');
    this.stream.expect('blockEnd');
    return this.#parseUntil(endTags);
  }

  /** Parses a body with one possible end tag, and consumes its name. */
  #parseWholeBody(endTag: string): Statement[] {
    const body = this.#parseBody(endTag);
    this.stream.next();
    return body;
  }

  #failUnclosed(problem: string, token?: Token): never {
    const tags = this.#endTags.at(-1)?.map((tag) => `'${tag}'`);
    this.stream.fail(tags === undefined ? problem : `${problem}; expected ${tags.join(' or ')}`, token);
  }

  #parseStatement(): Statement {
    const token = this.stream.current;
    if (token.kind !== 'name') return this.stream.fail('tag name expected');
    if (UNSUPPORTED.has(token.value))
      return this.stream.fail(`the tag '${token.value}' is not supported in chat templates`);
    const rule = this.#rules[token.value];
    if (rule === undefined) return this.#failUnclosed(`Encountered unknown tag '${token.value}'`, token);
    this.stream.next();
    return rule(token);
  }

  #parseIf(token: Token): Statement {
    const { stream } = this;
    const branches: { cond: Expression; body: Statement[] }[] = [];
    for (;;) {
      stream.checkChain(branches.length);
      const cond = this.parseTuple({ withCondition: false });
      branches.push({ cond, body: this.#parseBody('elif', 'else', 'endif') });
      const end = stream.next().value;
      if (end === 'elif') continue;
      const otherwise = end === 'else' ? this.#parseWholeBody('endif') : [];
      return stream.node('If', token, { branches, otherwise });
    }
  }

  #parseFor(token: Token): Statement {
    const { stream } = this;
    const target = this.#parseTarget({ endName: 'in' });
    stream.expectName('in');
    const iterable = this.parseTuple({ withCondition: false, endName: 'recursive' });
    const test = stream.skipName('if') ? this.parseExpression() : null;
    const isRecursive = stream.skipName('recursive');
    const body = this.#parseBody('endfor', 'else');
    const otherwise = stream.next().value === 'endfor' ? [] : this.#parseWholeBody('endfor');
    return stream.node('For', token, { target, iterable, body, otherwise, test, isRecursive });
  }

  #parseSet(token: Token): Statement {
    const { stream } = this;
    const target = this.#parseTarget({ withAttributes: true });
    if (stream.skipOperator('=')) return stream.node('Set', token, { target, value: this.parseTuple() });
    const filter = this.parseFilters(null);
    return stream.node('SetBlock', token, { target, filter, body: this.#parseWholeBody('endset') });
  }

  #parseSignature(): { parameters: NodeOf<'TargetName'>[]; defaults: Expression[] } {
    const { stream } = this;
    const parameters: NodeOf<'TargetName'>[] = [];
    const defaults: Expression[] = [];
    const names = new Set<string>();
    stream.expectOperator('(');
    while (!stream.isOperator(')')) {
      if (parameters.length > 0) stream.expectOperator(',');
      const parameter = this.#parseTargetName();
      if (stream.skipOperator('=')) defaults.push(this.parseExpression());
      else if (defaults.length > 0) stream.fail('non-default argument follows default argument');
      if (names.has(parameter.name))
        stream.fail(`duplicate argument '${parameter.name}' in function definition`);
      names.add(parameter.name);
      parameters.push(parameter);
    }
    stream.next();
    return { parameters, defaults };
  }

  #parseMacro(token: Token): Statement {
    const { name } = this.#parseTargetName();
    const signature = this.#parseSignature();
    return this.stream.node('Macro', token, { name, ...signature, body: this.#parseWholeBody('endmacro') });
  }

  #parseCallBlock(token: Token): Statement {
    const { stream } = this;
    const signature = stream.isOperator('(') ? this.#parseSignature() : { parameters: [], defaults: [] };
    const call = this.parseExpression();
    if (call.typename !== 'FunCall') return stream.fail('expected call', token);
    return stream.node('CallBlock', token, { call, ...signature, body: this.#parseWholeBody('endcall') });
  }

  #parseFilterBlock(token: Token): Statement {
    const filter = this.parseFilters(null, true)!;
    return this.stream.node('FilterBlock', token, { body: this.#parseWholeBody('endfilter'), filter });
  }

  #parseWith(token: Token): Statement {
    const { stream } = this;
    const targets: Target[] = [];
    const values: Expression[] = [];
    while (stream.current.kind !== 'blockEnd' && stream.current.kind !== 'end') {
      if (targets.length > 0) stream.expectOperator(',');
      targets.push(this.#parseTarget());
      stream.expectOperator('=');
      values.push(this.parseExpression());
    }
    return stream.node('With', token, { targets, values, body: this.#parseWholeBody('endwith') });
  }

  #parseBlock(token: Token): Statement {
    const { stream } = this;
    const name = stream.expect('name').value;
    if (stream.isName('scoped', 'required'))
      stream.fail(`'${stream.current.value}' blocks are not supported in chat templates`);
    const body = this.#parseWholeBody('endblock');
    stream.skipName(name);
    return stream.node('Block', token, { name, body });
  }

  #parsePrint(token: Token): Statement {
    const { stream } = this;
    const children: Expression[] = [];
    while (stream.current.kind !== 'blockEnd') {
      if (children.length > 0) stream.expectOperator(',');
      children.push(this.parseExpression());
    }
    return stream.node('Output', token, { children });
  }

  /** Parses the left side of `=`, or the part between `for` and `in`. */
  #parseTarget(options: { readonly endName?: string; readonly withAttributes?: boolean } = {}): Target {
    const { stream } = this;
    const start = stream.current;
    const [items, isTuple] = this.items(options.endName, () => this.parsePrimary());
    const [first] = isTuple ? [stream.node('Tuple', start, { items })] : items;
    if (first === undefined) return stream.fail(`Expected an expression, got '${describeToken(start)}'`);
    return this.#toTarget(first, options.withAttributes ?? false);
  }

  #toTarget(expression: Expression, withAttributes: boolean): Target {
    const { stream } = this;
    if (expression.typename === 'Symbol')
      return stream.node('TargetName', expression, { name: expression.name });
    if (expression.typename === 'Tuple') {
      const items = expression.items.map((item) => this.#toTarget(item, withAttributes));
      return stream.node('TargetTuple', expression, { items });
    }
    if (withAttributes && expression.typename === 'Attribute' && expression.target.typename === 'Symbol') {
      const { target, name: attribute } = expression;
      return stream.node('TargetAttribute', target, { name: target.name, attribute });
    }
    return stream.fail('expected a name to assign to', expression);
  }

  #parseTargetName(): NodeOf<'TargetName'> {
    const token = this.stream.expect('name');
    if (CONSTANTS.has(token.value)) this.stream.fail(`can't assign to '${token.value}'`, token);
    return this.stream.node('TargetName', token, { name: token.value });
  }
}
