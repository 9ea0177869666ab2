/** A node -> the nodes inside it, in the order of its fields. */
import type { AnyNode } from './nodes.ts';

/** Calls `visit` for the nodes directly below a node. */
export function visitChildren(parent: object, visit: (child: AnyNode) => void): void {
  for (const field of Object.values(parent)) {
    if (typeof field !== 'object' || field === null) continue;
    if ('offset' in field) visit(field as AnyNode);
    else visitChildren(field, visit);
  }
}

/** Returns a node and all nodes inside it, parents first. */
export function descendants(node: AnyNode): readonly AnyNode[] {
  const found: AnyNode[] = [];
  const visit = (inner: AnyNode): void => {
    found.push(inner);
    visitChildren(inner, visit);
  };
  visit(node);
  return found;
}
