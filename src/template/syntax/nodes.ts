/** The types of the syntax tree: Nunjucks nodes with the fields of this dialect. */
import { type NunjucksNode, nunjucksNodes } from '../nunjucks.ts';
import type { Value } from '../python/values.ts';

export type Arguments = {
  readonly positional: readonly Expression[];
  readonly keywords: readonly { readonly name: string; readonly value: Expression }[];
  readonly spread: Expression | null;
  readonly spreadKeywords: Expression | null;
};

type Pair = { readonly left: Expression; readonly right: Expression };
type Body = readonly Statement[];
type Signature = {
  readonly parameters: readonly NodeOf<'TargetName'>[];
  /** Default values of the last parameters. */
  readonly defaults: readonly Expression[];
};

type ExpressionFields = {
  Literal: { readonly value: Value };
  Symbol: { readonly name: string };
  Array: { readonly items: readonly Expression[] };
  Tuple: { readonly items: readonly Expression[] };
  Dict: { readonly pairs: readonly { readonly key: Expression; readonly value: Expression }[] };
  Attribute: { readonly target: Expression; readonly name: string };
  LookupVal: { readonly target: Expression; readonly key: Expression };
  Slice: {
    readonly target: Expression;
    readonly start: Expression | null;
    readonly stop: Expression | null;
    readonly step: Expression | null;
  };
  FunCall: { readonly callee: Expression; readonly args: Arguments };
  /** The target is null for the first filter of a block. */
  Filter: { readonly target: Expression | null; readonly name: string; readonly args: Arguments };
  Is: { readonly target: Expression; readonly name: string; readonly args: Arguments };
  InlineIf: { readonly cond: Expression; readonly body: Expression; readonly otherwise: Expression | null };
  Either: Pair & { readonly operator: 'and' | 'or' };
  Not: { readonly target: Expression };
  BinOp: Pair & { readonly operator: BinaryOperator };
  UnaryOp: { readonly target: Expression; readonly operator: '+' | '-' };
  Concat: { readonly items: readonly Expression[] };
  Compare: {
    readonly first: Expression;
    readonly operands: readonly { readonly operator: CompareOperator; readonly value: Expression }[];
  };
};

type TargetFields = {
  TargetName: { readonly name: string };
  TargetTuple: { readonly items: readonly Target[] };
  TargetAttribute: { readonly name: string; readonly attribute: string };
};

type StatementFields = {
  Output: { readonly children: readonly (Expression | NodeOf<'TemplateData'>)[] };
  If: {
    readonly branches: readonly { readonly cond: Expression; readonly body: Body }[];
    readonly otherwise: Body;
  };
  For: {
    readonly target: Target;
    readonly iterable: Expression;
    readonly body: Body;
    readonly otherwise: Body;
    readonly test: Expression | null;
    readonly isRecursive: boolean;
  };
  Set: { readonly target: Target; readonly value: Expression };
  SetBlock: { readonly target: Target; readonly filter: NodeOf<'Filter'> | null; readonly body: Body };
  Macro: Signature & { readonly name: string; readonly body: Body };
  CallBlock: Signature & { readonly call: NodeOf<'FunCall'>; readonly body: Body };
  Generation: { readonly body: Body };
  FilterBlock: { readonly body: Body; readonly filter: NodeOf<'Filter'> };
  With: { readonly targets: readonly Target[]; readonly values: readonly Expression[]; readonly body: Body };
  Block: { readonly name: string; readonly body: Body };
  Break: Record<never, never>;
  Continue: Record<never, never>;
};

export type NodeFields = ExpressionFields &
  TargetFields &
  StatementFields & { Root: { readonly body: Body }; TemplateData: { readonly text: string } };

export type CompareOperator = '==' | '!=' | '<' | '<=' | '>' | '>=' | 'in' | 'not in';
export type BinaryOperator = '+' | '-' | '*' | '/' | '//' | '%' | '**';

/** A node of one type. `offset` is its position in the normalised source. */
export type NodeOf<K extends keyof NodeFields> = K extends unknown
  ? { readonly typename: K; readonly offset: number } & NodeFields[K] & NunjucksNode
  : never;

export type Expression = NodeOf<keyof ExpressionFields>;
export type Target = NodeOf<keyof TargetFields>;
export type Statement = NodeOf<keyof StatementFields>;
export type AnyNode = NodeOf<keyof NodeFields>;

const BASE = nunjucksNodes.Node.extend('TemplateNode', {
  init(this: Record<string, unknown>, offset: number, fields: Readonly<Record<string, unknown>>): void {
    this['offset'] = offset;
    for (const field in fields) this[field] = fields[field];
  },
});
const CLASSES = new Map<string, typeof BASE>();

/** Creates a node. A walk visits its fields in this order. */
export function createNode<K extends keyof NodeFields>(
  typename: K,
  offset: number,
  fields: NodeFields[K],
): NodeOf<K> {
  const NodeClass = CLASSES.get(typename) ?? BASE.extend(typename, {});
  CLASSES.set(typename, NodeClass);
  return new NodeClass(offset, fields) as unknown as NodeOf<K>;
}
