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
      visitAll(node.items, visit);
      return;
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
      visit(node.target);
      return;
    case 'LookupVal':
      visit(node.target);
      visit(node.key);
      return;
    case 'Slice':
      visit(node.target);
      for (const part of [node.start, node.stop, node.step]) if (part !== null) visit(part);
      return;
    case 'FunCall':
      visit(node.callee);
      visitArguments(node.args, visit);
      return;
    case 'Filter':
    case 'Is':
      if (node.target !== null) visit(node.target);
      visitArguments(node.args, visit);
      return;
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
      visit(node.right);
      return;
    case 'Compare':
      visit(node.first);
      for (const operand of node.operands) visit(operand.value);
      return;
    case 'Root':
    case 'Block':
      visitAll(node.body, visit);
      return;
    case 'Output':
      visitAll(node.children, visit);
      return;
    case 'If':
      for (const branch of node.branches) {
        visit(branch.cond);
        visitAll(branch.body, visit);
      }
      visitAll(node.otherwise, visit);
      return;
    case 'For':
      visit(node.target);
      visit(node.iterable);
      visitAll(node.body, visit);
      visitAll(node.otherwise, visit);
      if (node.test !== null) visit(node.test);
      return;
    case 'Set':
      visit(node.target);
      visit(node.value);
      return;
    case 'SetBlock':
      visit(node.target);
      if (node.filter !== null) visit(node.filter);
      visitAll(node.body, visit);
      return;
    case 'Macro':
    case 'CallBlock':
      if (node.typename === 'CallBlock' && node.call !== null) visit(node.call);
      visitAll(node.parameters, visit);
      visitAll(node.defaults, visit);
      visitAll(node.body, visit);
      return;
    case 'FilterBlock':
      visitAll(node.body, visit);
      visit(node.filter);
      return;
    case 'With':
      visitAll(node.targets, visit);
      visitAll(node.values, visit);
      visitAll(node.body, visit);
      return;
    case 'Autoescape':
      visit(node.value);
      visitAll(node.body, visit);
      return;
    case 'Loader':
      visit(node.template);
      return;
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
