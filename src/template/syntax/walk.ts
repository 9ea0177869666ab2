/** Visits the children of a node, in the order in which Jinja2's own tree has them. */
import type { AnyNode, Arguments } from './nodes.ts';

type Visit = (node: AnyNode) => void;

function visitAll(nodes: readonly AnyNode[], visit: Visit): void {
  for (const node of nodes) visit(node);
}

function visitArguments(args: Arguments, visit: Visit): void {
  visitAll(args.positional, visit);
  for (const keyword of args.keywords) visit(keyword.value);
  if (args.spread !== null) visit(args.spread);
  if (args.spreadKeywords !== null) visit(args.spreadKeywords);
}

/** Calls `visit` for every direct child. */
export function visitChildren(node: AnyNode, visit: Visit): void {
  switch (node.typename) {
    case 'Literal':
    case 'Symbol':
    case 'TargetName':
    case 'TargetAttribute':
    case 'TemplateData':
    case 'Break':
    case 'Continue':
      return;
    case 'Array':
    case 'Tuple':
    case 'Concat':
    case 'TargetTuple':
      return visitAll(node.items, visit);
    case 'Dict':
      for (const { key, value } of node.pairs) {
        visit(key);
        visit(value);
      }
      return;
    case 'Attribute':
    case 'Not':
    case 'Neg':
    case 'Pos':
      return visit(node.target);
    case 'LookupVal':
      visit(node.target);
      return visit(node.key);
    case 'Slice':
      visit(node.target);
      for (const part of [node.start, node.stop, node.step]) if (part !== null) visit(part);
      return;
    case 'FunCall':
      visit(node.callee);
      return visitArguments(node.args, visit);
    case 'Filter':
    case 'Is':
      if (node.target !== null) visit(node.target);
      return visitArguments(node.args, visit);
    case 'InlineIf':
      visit(node.cond);
      visit(node.body);
      if (node.otherwise !== null) visit(node.otherwise);
      return;
    case 'And':
    case 'Or':
    case 'Add':
    case 'Sub':
    case 'Mul':
    case 'Div':
    case 'FloorDiv':
    case 'Mod':
    case 'Pow':
      visit(node.left);
      return visit(node.right);
    case 'Compare':
      visit(node.first);
      for (const operand of node.operands) visit(operand.value);
      return;
    case 'Root':
    case 'Block':
      return visitAll(node.body, visit);
    case 'Output':
      return visitAll(node.children, visit);
    case 'If':
      for (const branch of node.branches) {
        visit(branch.cond);
        visitAll(branch.body, visit);
      }
      return visitAll(node.otherwise, visit);
    case 'For':
      visit(node.target);
      visit(node.iterable);
      visitAll(node.body, visit);
      visitAll(node.otherwise, visit);
      if (node.test !== null) visit(node.test);
      return;
    case 'Set':
      visit(node.target);
      return visit(node.value);
    case 'SetBlock':
      visit(node.target);
      if (node.filter !== null) visit(node.filter);
      return visitAll(node.body, visit);
    case 'Macro':
    case 'CallBlock':
      if (node.typename === 'CallBlock' && node.call !== null) visit(node.call);
      visitAll(node.parameters, visit);
      visitAll(node.defaults, visit);
      return visitAll(node.body, visit);
    case 'FilterBlock':
      visitAll(node.body, visit);
      return visit(node.filter);
    case 'With':
      visitAll(node.targets, visit);
      visitAll(node.values, visit);
      return visitAll(node.body, visit);
    case 'Autoescape':
      visit(node.value);
      return visitAll(node.body, visit);
    case 'Loader':
      return visit(node.template);
  }
}

/** A node and everything below it, parents first. */
export function descendants(node: AnyNode): readonly AnyNode[] {
  const found: AnyNode[] = [];
  const visit = (inner: AnyNode): void => {
    found.push(inner);
    visitChildren(inner, visit);
  };
  visit(node);
  return found;
}
