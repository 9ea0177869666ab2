/** The nodes of a graph -> indexes by output and input, to find patterns. */
import type { GraphNode } from './graph-file.ts';

/** Operators that may be between a matmul and its inputs or users. */
const SMALL = new Set(['Add', 'Cast', 'Div', 'Expand', 'Mul', 'Reshape', 'Transpose', 'Unsqueeze', 'Where']);

/** Indexes of nodes by their outputs and inputs. */
export class Links {
  readonly #makers = new Map<string, GraphNode>();
  readonly #users = new Map<string, GraphNode[]>();

  constructor(nodes: readonly GraphNode[]) {
    for (const node of nodes) {
      for (const output of named(node.outputs)) this.#makers.set(output, node);
      for (const input of new Set(named(node.inputs)))
        this.#users.set(input, [...(this.#users.get(input) ?? []), node]);
    }
  }

  /** Returns the node that computes a tensor, if it is one of these operators. */
  maker(name: string | undefined, ...opTypes: string[]): GraphNode | null {
    const node = this.#makers.get(name ?? '');
    return node && (opTypes.length === 0 || opTypes.includes(node.opType)) ? node : null;
  }

  /** Returns true if a tensor is the output of `Constant` or of no node. This includes inputs of the graph, so call it for weights only. */
  isConstant(name: string): boolean {
    const maker = this.#makers.get(name);
    return !maker || maker.opType === 'Constant';
  }

  users(name: string): readonly GraphNode[] {
    return this.#users.get(name) ?? [];
  }

  /** Returns the nearest node with this operator that uses a tensor, directly or through small operators. */
  after(name: string, opType: string): GraphNode | null {
    return nearest(
      [name],
      opType,
      (one) => this.users(one),
      ({ outputs }) => outputs,
    );
  }

  /** Returns the nearest node with this operator that a tensor is computed from, directly or through small operators. */
  before(name: string, opType: string): GraphNode | null {
    const maker = (one: string): GraphNode[] => [this.#makers.get(one) ?? []].flat();
    return nearest([name], opType, maker, ({ inputs }) => inputs);
  }
}

function nearest(
  from: readonly string[],
  opType: string,
  step: (name: string) => readonly GraphNode[],
  next: (node: GraphNode) => readonly string[],
): GraphNode | null {
  const seen = new Set(from);
  for (const name of seen)
    for (const node of step(name)) {
      if (node.opType === opType) return node;
      if (SMALL.has(node.opType)) for (const other of next(node)) seen.add(other);
    }
  return null;
}

/** Returns the names without omitted inputs. */
function named(names: readonly string[]): readonly string[] {
  return names.filter((name) => name !== '');
}

/** Returns the nodes that the outputs depend on, each after its inputs. */
export function needed(nodes: readonly GraphNode[], outputs: readonly string[]): GraphNode[] {
  const makers = new Map(
    nodes.flatMap((node) => named(node.outputs).map((output) => [output, node] as const)),
  );
  const ordered = new Set<GraphNode>();
  const open: { node: GraphNode; isReady: boolean }[] = [];
  const visit = (name: string): void => {
    const node = makers.get(name);
    if (node && !ordered.has(node)) open.push({ node, isReady: false });
  };
  for (const name of outputs) {
    visit(name);
    for (let top = open.pop(); top; top = open.pop()) {
      if (top.isReady) ordered.add(top.node);
      else if (!ordered.has(top.node)) {
        open.push({ node: top.node, isReady: true });
        for (const input of top.node.inputs) visit(input);
      }
    }
  }
  return [...ordered];
}
