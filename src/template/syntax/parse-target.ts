/** Tokens -> assignment targets. The base class of the parsers. */
import type { Value } from '../python/values.ts';
import type { NodeOf, Target } from './nodes.ts';
import type { TokenStream } from './token-stream.ts';
import { describeToken } from './tokens.ts';

/** Names of values, which cannot be assigned to. */
export const CONSTANTS = new Map<string, Value>([
  ['true', true],
  ['True', true],
  ['false', false],
  ['False', false],
  ['none', null],
  ['None', null],
]);

/** Parses what is assigned to. */
export class TargetParser {
  protected readonly stream: TokenStream;

  constructor(stream: TokenStream) {
    this.stream = stream;
  }

  /** A list of what `parse` reads, separated by commas. */
  protected items<T>(endName: string | undefined, parse: () => T): [items: T[], isTuple: boolean] {
    const { stream } = this;
    const items: T[] = [];
    let isTuple = false;
    for (;;) {
      if (items.length > 0) stream.expectOperator(',');
      const { kind } = stream.current;
      if (kind === 'variableEnd' || kind === 'blockEnd' || stream.isOperator(')')) break;
      if (endName !== undefined && stream.isName(endName)) break;
      items.push(parse());
      if (!stream.isOperator(',')) break;
      isTuple = true;
    }
    return [items, isTuple];
  }

  /** The left side of `=`, or the part between `for` and `in`. */
  parseTarget(options: { readonly endName?: string; readonly withAttributes?: boolean } = {}): Target {
    const { stream } = this;
    const start = stream.current;
    const withAttributes = options.withAttributes ?? false;
    const [items, isTuple] = this.items(options.endName, () => this.#targetItem(withAttributes));
    if (isTuple) return stream.node('TargetTuple', start, { items });
    if (items.length === 0)
      return stream.fail(`Expected an expression, got '${describeToken(stream.current)}'`);
    return items[0]!;
  }

  #targetItem(withAttributes: boolean): Target {
    const { stream } = this;
    const token = stream.current;
    if (stream.isOperator('(')) {
      return stream.nested(() => {
        stream.next();
        const [items, isTuple] = this.items(undefined, () => this.#targetItem(false));
        stream.expectOperator(')');
        return isTuple || items.length === 0 ? stream.node('TargetTuple', token, { items }) : items[0]!;
      });
    }
    if (token.kind !== 'name') return stream.fail(`can't assign to '${describeToken(token)}'`);
    if (withAttributes && stream.following.kind === 'operator' && stream.following.value === '.') {
      stream.next();
      stream.next();
      const attribute = stream.expect('name').value;
      return stream.node('TargetAttribute', token, { name: token.value, attribute });
    }
    return this.parseTargetName();
  }

  /** A single name. */
  parseTargetName(): NodeOf<'TargetName'> {
    const token = this.stream.expect('name');
    if (CONSTANTS.has(token.value)) this.stream.fail(`can't assign to '${token.value}'`, token);
    return this.stream.node('TargetName', token, { name: token.value });
  }
}
