/** Which names a scope reads and writes, and where each comes from: Jinja2's rules of scoping, decided before running. */
import type { AnyNode, NodeOf, Statement, Target } from './nodes.ts';
import { visitChildren } from './walk.ts';

/** How a name gets its value when its scope is entered. */
export type Load =
  | { readonly kind: 'parameter' | 'clear' }
  | { readonly kind: 'resolve'; readonly name: string }
  | { readonly kind: 'alias'; readonly from: string };

/** The names of one scope. An identifier is a name together with the depth of the scope it belongs to. */
export class Symbols {
  readonly level: number;
  readonly #parent: Symbols | null;
  #identifiers = new Map<string, string>(); // name -> identifier
  #loads = new Map<string, Load>(); // identifier -> load
  #stores = new Set<string>(); // names

  constructor(parent: Symbols | null) {
    this.#parent = parent;
    this.level = parent === null ? 0 : parent.level + 1;
  }

  get loads(): ReadonlyMap<string, Load> {
    return this.#loads;
  }
  get stores(): ReadonlySet<string> {
    return this.#stores;
  }
  get parent(): Symbols | null {
    return this.#parent;
  }

  /** The identifier of a name, or undefined when no scope up to the root knows it. */
  find(name: string): string | undefined {
    return this.#identifiers.get(name) ?? this.#parent?.find(name);
  }

  /** How an identifier is loaded. */
  findLoad(identifier: string): Load | undefined {
    return this.#loads.get(identifier) ?? this.#parent?.findLoad(identifier);
  }

  #define(name: string, load: Load): string {
    const identifier = `${this.level} ${name}`;
    this.#identifiers.set(name, identifier);
    this.#loads.set(identifier, load);
    return identifier;
  }

  /** A name that is read. */
  load(name: string): void {
    if (this.find(name) === undefined) this.#define(name, { kind: 'resolve', name });
  }

  /** A name that is written. Until then it shows the outer variable, or nothing. */
  store(name: string): void {
    this.#stores.add(name);
    if (this.#identifiers.has(name)) return;
    const outer = this.#parent?.find(name);
    this.#define(name, outer === undefined ? { kind: 'clear' } : { kind: 'alias', from: outer });
  }

  /** A name that always has a value: a loop target, a macro parameter. */
  declareParameter(name: string): string {
    this.#stores.add(name);
    return this.#define(name, { kind: 'parameter' });
  }

  /** A scratch copy for one branch of an `if`. */
  copy(): Symbols {
    const copy = new Symbols(this.#parent);
    copy.#identifiers = new Map(this.#identifiers);
    copy.#loads = new Map(this.#loads);
    copy.#stores = new Set(this.#stores);
    return copy;
  }

  /** Takes over what the branches of an `if` found. What only some branches write falls back to the outside. */
  mergeBranches(branches: readonly Symbols[]): void {
    const written = new Set<string>();
    for (const branch of branches)
      for (const name of branch.#stores) if (!this.#stores.has(name)) written.add(name);
    for (const branch of branches) {
      for (const [name, identifier] of branch.#identifiers) this.#identifiers.set(name, identifier);
      for (const [identifier, load] of branch.#loads) this.#loads.set(identifier, load);
      for (const name of branch.#stores) this.#stores.add(name);
    }
    for (const name of written) {
      const outer = this.#parent?.find(name);
      this.#loads.set(
        this.find(name)!,
        outer === undefined ? { kind: 'resolve', name } : { kind: 'alias', from: outer },
      );
    }
  }

  /** Every name with a value in this scope and those around it: what a scoped block sees. */
  visibleStores(): Map<string, string> {
    const visible = new Map<string, string>();
    for (let symbols: Symbols | null = this; symbols !== null; symbols = symbols.#parent)
      for (const name of symbols.#stores) if (!visible.has(name)) visible.set(name, this.find(name)!);
    return visible;
  }
}

/** Adds the names that statements and expressions use, in the order they are met. Inner scopes are left out. */
export function collect(symbols: Symbols, nodes: Iterable<AnyNode>): void {
  for (const node of nodes) collectNode(symbols, node);
}

/** Adds the names of an assignment target, as parameters or as stores. */
export function collectTarget(symbols: Symbols, target: Target, asParameter: boolean): void {
  if (target.typename === 'TargetTuple')
    for (const item of target.items) collectTarget(symbols, item, asParameter);
  else if (target.typename === 'TargetAttribute') symbols.load(target.name);
  else if (asParameter) symbols.declareParameter(target.name);
  else symbols.store(target.name);
}

function collectNode(symbols: Symbols, node: AnyNode): void {
  switch (node.typename) {
    case 'Symbol':
      return symbols.load(node.name);
    case 'TargetName':
    case 'TargetTuple':
    case 'TargetAttribute':
      return collectTarget(symbols, node, false);
    case 'If':
      return collectIf(symbols, node);
    case 'Macro':
      return symbols.store(node.name);
    case 'Loader':
      collectNode(symbols, node.template);
      for (const name of node.names) symbols.store(name);
      return;
    case 'Set':
      collectNode(symbols, node.value);
      return collectTarget(symbols, node.target, false);
    case 'For':
      return collectNode(symbols, node.iterable);
    case 'CallBlock':
      if (node.call !== null) collectNode(symbols, node.call);
      return;
    case 'FilterBlock':
      return collectNode(symbols, node.filter);
    case 'With':
      return collect(symbols, node.values);
    case 'SetBlock':
      return collectTarget(symbols, node.target, false);
    case 'Autoescape':
    case 'Block':
      return;
    default:
      visitChildren(node, (child) => collectNode(symbols, child));
  }
}

/** An elif is an `if` of its own inside the branch of all elifs, as in Jinja2's tree. */
function collectIf(symbols: Symbols, node: NodeOf<'If'>): void {
  const [head, ...rest] = node.branches;
  collectNode(symbols, head!.cond);
  const branches = [collectBranch(symbols, head!.body)];
  if (rest.length > 0) {
    const elifs = symbols.copy();
    for (const branch of rest) {
      collectNode(elifs, branch.cond);
      elifs.mergeBranches([collectBranch(elifs, branch.body)]);
    }
    branches.push(elifs);
  }
  if (node.otherwise.length > 0) branches.push(collectBranch(symbols, node.otherwise));
  symbols.mergeBranches(branches);
}

/** The names of one branch, on top of those before it. An empty branch adds nothing, so it needs no copy. */
function collectBranch(symbols: Symbols, body: readonly Statement[]): Symbols {
  const branch = symbols.copy();
  collect(branch, body);
  return branch;
}

/**
 * Which of the names are read before any assignment of that name, going through the nodes in order.
 * Blocks are left out, since they are functions of their own.
 */
export function findUndeclared(nodes: Iterable<AnyNode>, names: readonly string[]): ReadonlySet<string> {
  const open = new Set(names);
  const undeclared = new Set<string>();
  const visit = (node: AnyNode): void => {
    if (node.typename === 'Symbol') {
      if (open.has(node.name)) undeclared.add(node.name);
    } else if (node.typename === 'TargetName') open.delete(node.name);
    else if (node.typename !== 'Block') visitChildren(node, visit);
  };
  for (const node of nodes) visit(node);
  return undeclared;
}
