/** A node -> its children, in the order of Jinja2's own tree. */
import type { AnyNode, Arguments, NodeOf } from './nodes.ts';

type Children = readonly (AnyNode | null)[];

const none = (): Children => [];
const items = ({ items }: { readonly items: Children }): Children => items;
const target = (node: { readonly target: AnyNode }): Children => [node.target];
const operands = ({ left, right }: { readonly left: AnyNode; readonly right: AnyNode }): Children => [
  left,
  right,
];
const filterOrTest = ({ target, args }: NodeOf<'Filter'> | NodeOf<'Is'>): Children => [
  target,
  ...argumentsOf(args),
];

function argumentsOf({ positional, keywords, spread, spreadKeywords }: Arguments): Children {
  if (keywords.length === 0 && spread === null && spreadKeywords === null) return positional;
  return [...positional, ...keywords.map(({ value }) => value), spread, spreadKeywords];
}

/** Children by type; null for a part that the node does not have. */
const CHILDREN: { readonly [Type in AnyNode['typename']]: (node: NodeOf<Type>) => Children } = {
  Literal: none,
  Symbol: none,
  Array: items,
  Tuple: items,
  Dict: ({ pairs }) => pairs.flatMap(({ key, value }) => [key, value]),
  Attribute: target,
  LookupVal: ({ target, key }) => [target, key],
  Slice: ({ target, start, stop, step }) => [target, start, stop, step],
  FunCall: ({ callee, args }) => [callee, ...argumentsOf(args)],
  Filter: filterOrTest,
  Is: filterOrTest,
  InlineIf: ({ cond, body, otherwise }) => [cond, body, otherwise],
  And: operands,
  Or: operands,
  Add: operands,
  Sub: operands,
  Mul: operands,
  Div: operands,
  FloorDiv: operands,
  Mod: operands,
  Pow: operands,
  Not: target,
  Neg: target,
  Pos: target,
  Concat: items,
  Compare: ({ first, operands }) => [first, ...operands.map(({ value }) => value)],
  TargetName: none,
  TargetTuple: items,
  TargetAttribute: none,
  Root: ({ body }) => body,
  Output: ({ children }) => children,
  TemplateData: none,
  If: ({ branches, otherwise }) => [...branches.flatMap(({ cond, body }) => [cond, ...body]), ...otherwise],
  For: ({ target, iterable, body, otherwise, test }) => [target, iterable, ...body, ...otherwise, test],
  Set: ({ target, value }) => [target, value],
  SetBlock: ({ target, filter, body }) => [target, filter, ...body],
  Macro: ({ parameters, defaults, body }) => [...parameters, ...defaults, ...body],
  CallBlock: ({ call, parameters, defaults, body }) => [call, ...parameters, ...defaults, ...body],
  FilterBlock: ({ body, filter }) => [...body, filter],
  With: ({ targets, values, body }) => [...targets, ...values, ...body],
  Block: ({ body }) => body,
  Autoescape: ({ value, body }) => [value, ...body],
  Break: none,
  Continue: none,
  Loader: ({ template }) => [template],
};

/** Calls `visit` for every child. */
export function visitChildren(node: AnyNode, visit: (child: AnyNode) => void): void {
  for (const child of CHILDREN[node.typename](node as never)) if (child !== null) visit(child);
}

/** A node and all its descendants, parents first. */
export function descendants(node: AnyNode): readonly AnyNode[] {
  const found: AnyNode[] = [];
  const visit = (inner: AnyNode): void => {
    found.push(inner);
    visitChildren(inner, visit);
  };
  visit(node);
  return found;
}
