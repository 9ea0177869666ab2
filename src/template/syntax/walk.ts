/** Node -> its children, in the order in which Jinja2's own tree has them. */
import type { AnyNode, Arguments } from './nodes.ts';

function argumentNodes(args: Arguments): AnyNode[] {
  return [
    ...args.positional,
    ...args.keywords.map((keyword) => keyword.value),
    ...(args.spread === null ? [] : [args.spread]),
    ...(args.spreadKeywords === null ? [] : [args.spreadKeywords]),
  ];
}

function present(...nodes: readonly (AnyNode | null)[]): AnyNode[] {
  return nodes.filter((node) => node !== null);
}

/** The direct children of a node. */
export function childrenOf(node: AnyNode): readonly AnyNode[] {
  switch (node.typename) {
    case 'Literal':
    case 'Symbol':
    case 'TargetName':
    case 'TargetAttribute':
    case 'TemplateData':
    case 'Break':
    case 'Continue':
      return [];
    case 'Array':
    case 'Tuple':
    case 'Concat':
    case 'TargetTuple':
      return node.items;
    case 'Dict':
      return node.pairs.flatMap((pair) => [pair.key, pair.value]);
    case 'Attribute':
    case 'Not':
    case 'Neg':
    case 'Pos':
      return [node.target];
    case 'LookupVal':
      return [node.target, node.key];
    case 'Slice':
      return present(node.target, node.start, node.stop, node.step);
    case 'FunCall':
      return [node.callee, ...argumentNodes(node.args)];
    case 'Filter':
    case 'Is':
      return [...present(node.target), ...argumentNodes(node.args)];
    case 'InlineIf':
      return present(node.cond, node.body, node.otherwise);
    case 'And':
    case 'Or':
    case 'Add':
    case 'Sub':
    case 'Mul':
    case 'Div':
    case 'FloorDiv':
    case 'Mod':
    case 'Pow':
      return [node.left, node.right];
    case 'Compare':
      return [node.first, ...node.operands.map((operand) => operand.value)];
    case 'Root':
    case 'Block':
      return node.body;
    case 'Output':
      return node.children;
    case 'If':
      return [...node.branches.flatMap((branch) => [branch.cond, ...branch.body]), ...node.otherwise];
    case 'For':
      return present(node.target, node.iterable, ...node.body, ...node.otherwise, node.test);
    case 'Set':
      return [node.target, node.value];
    case 'SetBlock':
      return present(node.target, node.filter, ...node.body);
    case 'Macro':
      return [...node.parameters, ...node.defaults, ...node.body];
    case 'CallBlock':
      return present(node.call, ...node.parameters, ...node.defaults, ...node.body);
    case 'FilterBlock':
      return [...node.body, node.filter];
    case 'With':
      return [...node.targets, ...node.values, ...node.body];
    case 'Autoescape':
      return [node.value, ...node.body];
    case 'Loader':
      return [node.template];
  }
}

/** A node and everything below it, parents first. */
export function* descendants(node: AnyNode): Generator<AnyNode> {
  yield node;
  for (const child of childrenOf(node)) yield* descendants(child);
}
