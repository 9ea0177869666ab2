/** The types of the syntax tree: Nunjucks nodes with this dialect's fields. The scope pass fills the `plan` fields. */
import { type NunjucksNode, nunjucksNodes } from '../nunjucks.ts';
import type { Value } from '../python/values.ts';
import type {
  CallBlockPlan,
  ForPlan,
  FramePlan,
  MacroPlan,
  OutputPlan,
  ResolvedTarget,
  RootPlan,
  SetPlan,
  VariableRef,
} from './plans.ts';

/** Arguments of a call, a filter or a test. */
export type Arguments = {
  readonly positional: readonly Expression[];
  readonly keywords: readonly { readonly name: string; readonly value: Expression }[];
  readonly spread: Expression | null;
  readonly spreadKeywords: Expression | null;
};

type Binary = { readonly left: Expression; readonly right: Expression };
type Unary = { readonly target: Expression };
type Body = readonly Statement[];

/** The fields of every node type. */
export type NodeFields = {
  // expressions
  Literal: { readonly value: Value };
  Symbol: { readonly name: string; ref: VariableRef | null; isAlwaysSet: boolean };
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
  Filter: { readonly target: Expression | null; readonly name: string; readonly args: Arguments };
  Is: { readonly target: Expression; readonly name: string; readonly args: Arguments };
  InlineIf: { readonly cond: Expression; readonly body: Expression; readonly otherwise: Expression | null };
  And: Binary;
  Or: Binary;
  Add: Binary;
  Sub: Binary;
  Mul: Binary;
  Div: Binary;
  FloorDiv: Binary;
  Mod: Binary;
  Pow: Binary;
  Not: Unary;
  Neg: Unary;
  Pos: Unary;
  Concat: { readonly items: readonly Expression[] };
  Compare: {
    readonly first: Expression;
    readonly operands: readonly { readonly operator: CompareOperator; readonly value: Expression }[];
  };
  // assignment targets
  TargetName: { readonly name: string };
  TargetTuple: { readonly items: readonly Target[] };
  TargetAttribute: { readonly name: string; readonly attribute: string };
  // statements
  Root: { readonly body: Body; plan: RootPlan | null };
  Output: { readonly children: readonly (Expression | NodeOf<'TemplateData'>)[]; plan: OutputPlan | null };
  TemplateData: { readonly text: string };
  If: {
    readonly branches: readonly { readonly cond: Expression; readonly body: Body }[];
    readonly otherwise: Body;
  };
  For: {
    readonly target: Target;
    readonly iterable: Expression;
    readonly test: Expression | null;
    readonly isRecursive: boolean;
    readonly body: Body;
    readonly otherwise: Body;
    plan: ForPlan | null;
  };
  Set: { readonly target: Target; readonly value: Expression; plan: SetPlan | null };
  SetBlock: {
    readonly target: Target;
    readonly filter: NodeOf<'Filter'> | null;
    readonly body: Body;
    plan: (SetPlan & { readonly frame: FramePlan }) | null;
  };
  Macro: {
    readonly name: string;
    readonly parameters: readonly NodeOf<'TargetName'>[];
    readonly defaults: readonly Expression[];
    readonly body: Body;
    plan: MacroPlan | null;
  };
  /** `{% call %}`, or `{% generation %}` if `call` is null. */
  CallBlock: {
    readonly call: NodeOf<'FunCall'> | null;
    readonly parameters: readonly NodeOf<'TargetName'>[];
    readonly defaults: readonly Expression[];
    readonly body: Body;
    plan: CallBlockPlan | null;
  };
  FilterBlock: { readonly filter: NodeOf<'Filter'>; readonly body: Body; plan: FramePlan | null };
  With: {
    readonly targets: readonly Target[];
    readonly values: readonly Expression[];
    readonly body: Body;
    plan: { readonly frame: FramePlan; readonly targets: readonly ResolvedTarget[] } | null;
  };
  Block: {
    readonly name: string;
    readonly isScoped: boolean;
    readonly isRequired: boolean;
    readonly body: Body;
    /** The outer variables that a scoped block sees. */
    plan: readonly { readonly name: string; readonly ref: VariableRef }[] | null;
  };
  Autoescape: { readonly value: Expression; readonly body: Body; plan: FramePlan | null };
  Break: Record<never, never>;
  Continue: Record<never, never>;
  /** include, import, from and extends. There is no loader, so executing one is an error. */
  Loader: { readonly template: Expression; readonly tag: string; readonly names: readonly string[] };
};

export type CompareOperator = '==' | '!=' | '<' | '<=' | '>' | '>=' | 'in' | 'not in';

/** A node of one type. `offset` is its position in the normalised source. */
export type NodeOf<K extends keyof NodeFields> = K extends unknown
  ? { readonly typename: K; readonly offset: number } & NodeFields[K] & NunjucksNode
  : never;

export type BinaryName = 'Add' | 'Sub' | 'Mul' | 'Div' | 'FloorDiv' | 'Mod' | 'Pow';
export type Expression = NodeOf<
  | 'Literal'
  | 'Symbol'
  | 'Array'
  | 'Tuple'
  | 'Dict'
  | 'Attribute'
  | 'LookupVal'
  | 'Slice'
  | 'FunCall'
  | 'Filter'
  | 'Is'
  | 'InlineIf'
  | 'And'
  | 'Or'
  | BinaryName
  | 'Not'
  | 'Neg'
  | 'Pos'
  | 'Concat'
  | 'Compare'
>;
export type Target = NodeOf<'TargetName' | 'TargetTuple' | 'TargetAttribute'>;
export type Statement = NodeOf<
  | 'Output'
  | 'If'
  | 'For'
  | 'Set'
  | 'SetBlock'
  | 'Macro'
  | 'CallBlock'
  | 'FilterBlock'
  | 'With'
  | 'Block'
  | 'Autoescape'
  | 'Break'
  | 'Continue'
  | 'Loader'
>;
export type AnyNode = NodeOf<keyof NodeFields>;

const FIELDS: { readonly [K in keyof NodeFields]: readonly (keyof NodeFields[K] & string)[] } = {
  Literal: ['value'],
  Symbol: ['name', 'ref', 'isAlwaysSet'],
  Array: ['items'],
  Tuple: ['items'],
  Dict: ['pairs'],
  Attribute: ['target', 'name'],
  LookupVal: ['target', 'key'],
  Slice: ['target', 'start', 'stop', 'step'],
  FunCall: ['callee', 'args'],
  Filter: ['target', 'name', 'args'],
  Is: ['target', 'name', 'args'],
  InlineIf: ['cond', 'body', 'otherwise'],
  And: ['left', 'right'],
  Or: ['left', 'right'],
  Add: ['left', 'right'],
  Sub: ['left', 'right'],
  Mul: ['left', 'right'],
  Div: ['left', 'right'],
  FloorDiv: ['left', 'right'],
  Mod: ['left', 'right'],
  Pow: ['left', 'right'],
  Not: ['target'],
  Neg: ['target'],
  Pos: ['target'],
  Concat: ['items'],
  Compare: ['first', 'operands'],
  TargetName: ['name'],
  TargetTuple: ['items'],
  TargetAttribute: ['name', 'attribute'],
  Root: ['body', 'plan'],
  Output: ['children', 'plan'],
  TemplateData: ['text'],
  If: ['branches', 'otherwise'],
  For: ['target', 'iterable', 'test', 'isRecursive', 'body', 'otherwise', 'plan'],
  Set: ['target', 'value', 'plan'],
  SetBlock: ['target', 'filter', 'body', 'plan'],
  Macro: ['name', 'parameters', 'defaults', 'body', 'plan'],
  CallBlock: ['call', 'parameters', 'defaults', 'body', 'plan'],
  FilterBlock: ['filter', 'body', 'plan'],
  With: ['targets', 'values', 'body', 'plan'],
  Block: ['name', 'isScoped', 'isRequired', 'body', 'plan'],
  Autoescape: ['value', 'body', 'plan'],
  Break: [],
  Continue: [],
  Loader: ['template', 'tag', 'names'],
};

/** Types of Nunjucks with a fixed field list; here they derive from its base class. */
const FIXED = new Set(['Literal', 'Symbol', 'Array', 'Dict', 'Root', 'Output', 'TemplateData']);

/** The position of a node: line and column from 0, and the offset. */
export type NodePlace = { readonly line: number; readonly column: number; readonly offset: number };

type NodeMaker = new (place: NodePlace, fields: object) => NunjucksNode;

const CLASSES = new Map(
  Object.entries(FIELDS).map(([name, fields]) => {
    const base = (FIXED.has(name) ? undefined : nunjucksNodes[name]) ?? nunjucksNodes['Node']!;
    const NodeClass = base.extend(name, { fields: ['offset', ...fields] });
    const planned = fields.filter((field) => field === 'plan' || field === 'ref' || field === 'isAlwaysSet');
    // Nunjucks' constructor calls init. One object is faster than a list of arguments.
    NodeClass.prototype.init = function init(
      this: Record<string, unknown>,
      place: NodePlace,
      given: Readonly<Record<string, unknown>>,
    ): void {
      this['lineno'] = place.line;
      this['colno'] = place.column;
      this['offset'] = place.offset;
      for (const field in given) this[field] = given[field];
      for (const field of planned) this[field] = null;
    };
    return [name, NodeClass as unknown as NodeMaker] as const;
  }),
);

/** Makes a node. Missing fields are null. */
export function createNode<K extends keyof NodeFields>(
  typename: K,
  place: NodePlace,
  fields: Omit<NodeFields[K], 'plan' | 'ref' | 'isAlwaysSet'>,
): NodeOf<K> {
  return new (CLASSES.get(typename)!)(place, fields) as unknown as NodeOf<K>;
}
