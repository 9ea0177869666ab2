/** A tree -> whether the template loops over the parts of a message's content. Follows set, loops, filters and macros. */
import type { AnyNode, Expression, NodeOf, Target } from './nodes.ts';
import { descendants } from './walk.ts';

type Role = 'messages' | 'message' | 'content';

type Roles = ReadonlyMap<string, ReadonlySet<Role>>;

/** Number of passes. Each level of aliases of aliases needs one, and chains are short. */
const PASSES = 10;

/** Returns true if a loop runs over a message's content. */
export function loopsOverContent(root: NodeOf<'Root'>): boolean {
  const nodes = [...descendants(root)];
  const roles = new Map<string, ReadonlySet<Role>>([['messages', new Set(['messages'])]]);
  const macros = new Map<string, NodeOf<'Macro'>>();
  for (const node of nodes) if (node.typename === 'Macro') macros.set(node.name, node);
  const give = (target: Target, found: ReadonlySet<Role>): void => {
    if (target.typename === 'TargetTuple') return;
    const name = target.typename === 'TargetName' ? target.name : `${target.name}.${target.attribute}`;
    roles.set(name, new Set([...(roles.get(name) ?? []), ...found]));
  };
  for (let pass = 0; pass < PASSES; pass++) for (const node of nodes) spread(node, roles, macros, give);
  return nodes.some((node) => node.typename === 'For' && rolesOf(node.iterable, roles).has('content'));
}

function spread(
  node: AnyNode,
  roles: Roles,
  macros: ReadonlyMap<string, NodeOf<'Macro'>>,
  give: (target: Target, found: ReadonlySet<Role>) => void,
): void {
  if (node.typename === 'Set') give(node.target, rolesOf(node.value, roles));
  else if (node.typename === 'For') {
    if (rolesOf(node.iterable, roles).has('messages')) give(node.target, new Set(['message']));
  } else if (node.typename === 'With')
    node.targets.forEach((target, index) => {
      give(target, rolesOf(node.values[index]!, roles));
    });
  else if (node.typename === 'FunCall' && node.callee.typename === 'Symbol') {
    const parameters = macros.get(node.callee.name)?.parameters ?? [];
    node.args.positional.forEach((value, index) => {
      if (parameters[index] !== undefined) give(parameters[index], rolesOf(value, roles));
    });
    for (const { name, value } of node.args.keywords) {
      const parameter = parameters.find((candidate) => candidate.name === name);
      if (parameter !== undefined) give(parameter, rolesOf(value, roles));
    }
  }
}

const NONE: ReadonlySet<Role> = new Set();

function rolesOf(node: Expression, roles: Roles): ReadonlySet<Role> {
  switch (node.typename) {
    case 'Symbol':
      return roles.get(node.name) ?? NONE;
    case 'Filter':
      return node.target === null ? NONE : rolesOf(node.target, roles);
    case 'Slice':
      return new Set([...rolesOf(node.target, roles)].filter((role) => role !== 'message'));
    case 'Attribute': {
      const inner =
        node.target.typename === 'Symbol' ? roles.get(`${node.target.name}.${node.name}`) : undefined;
      return inner ?? member(node.target, node.name, roles);
    }
    case 'LookupVal': {
      const key = node.key.typename === 'Literal' ? node.key.value : null;
      if (typeof key === 'string') return member(node.target, key, roles);
      return rolesOf(node.target, roles).has('messages') ? new Set<Role>(['message']) : NONE;
    }
    case 'InlineIf':
      return new Set([
        ...rolesOf(node.body, roles),
        ...(node.otherwise === null ? [] : rolesOf(node.otherwise, roles)),
      ]);
    case 'Either':
      return new Set([...rolesOf(node.left, roles), ...rolesOf(node.right, roles)]);
    default:
      return NONE;
  }
}

function member(target: Expression, name: string, roles: Roles): ReadonlySet<Role> {
  return name === 'content' && rolesOf(target, roles).has('message') ? new Set<Role>(['content']) : NONE;
}
