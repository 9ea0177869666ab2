/** Tokens -> assignment targets: expressions that name where a value goes. */
import type { Expression, NodeOf, Target } from './nodes.ts';
import { CONSTANTS, ExpressionParser } from './parse-expression.ts';
import { describeToken } from './tokens.ts';

export class TargetParser extends ExpressionParser {
  /** The left side of `=`, or the part between `for` and `in`. */
  parseTarget(options: { readonly endName?: string; readonly withAttributes?: boolean } = {}): Target {
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

  parseTargetName(): NodeOf<'TargetName'> {
    const token = this.stream.expect('name');
    if (CONSTANTS.has(token.value)) this.stream.fail(`can't assign to '${token.value}'`, token);
    return this.stream.node('TargetName', token, { name: token.value });
  }
}
