/** A scope -> the names that it reads and writes, each with its source, by Jinja2's static rules. */
import type { AnyNode, NodeOf, Statement, Target } from './nodes.ts';
import { visitChildren } from './walk.ts';

/** How a name gets its value on entry to its scope. */
export type Load =
  | { readonly kind: 'parameter' | 'clear' }
  | { readonly kind: 'resolve'; readonly name: string }
  | { readonly kind: 'alias'; readonly from: string };

/** The names of one scope. An identifier is a name together with the depth of the scope it belongs to. */
export class Symbols {
  readonly level: number;
  readonly #parent: Symbols | null;
  /** For a branch of an `if`: the scope before the branch. The maps below then contain only additions. */
  readonly #base: Symbols | null;
  readonly #identifiers = new Map<string, string>(); // name -> identifier
  readonly #loads = new Map<string, Load>(); // identifier -> load
  readonly #stores = new Set<string>(); // names

  constructor(parent: Symbols | null, base: Symbols | null = null) {
    this.#parent = parent;
    this.#base = base;
    this.level = parent === null ? 0 : parent.level + 1;
  }

  get loads(): ReadonlyMap<string, Load> {
    return this.#loads;
  }

  /** The identifier of a name, or undefined if no scope up to the root declares it. */
  find(name: string): string | undefined {
    return this.#own(name) ?? this.#parent?.find(name);
  }

  /** The identifier of a name that belongs to this scope itself. */
  #own(name: string): string | undefined {
    const own = this.#identifiers.get(name);
    return own === undefined && this.#base !== null ? this.#base.#own(name) : own;
  }

  #isStored(name: string): boolean {
    if (this.#stores.has(name)) return true;
    return this.#base === null ? false : this.#base.#isStored(name);
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

  /** A name that is written. Before that it has the outer variable's value, if any. */
  store(name: string): void {
    this.#stores.add(name);
    if (this.#own(name) !== undefined) return;
    const outer = this.#parent?.find(name);
    this.#define(name, outer === undefined ? { kind: 'clear' } : { kind: 'alias', from: outer });
  }

  /** A name that always has a value: a loop target, a macro parameter. */
  declareParameter(name: string): string {
    this.#stores.add(name);
    return this.#define(name, { kind: 'parameter' });
  }

  /** This scope for one branch of an `if`: additions stay in the branch until it is merged. */
  branch(): Symbols {
    return new Symbols(this.#parent, this);
  }

  /** Merges the branches of an `if`. A name that only some branches write falls back to the outer value. */
  mergeBranches(branches: readonly Symbols[]): void {
    const written = new Set<string>();
    for (const branch of branches)
      for (const name of branch.#stores) if (!this.#isStored(name)) written.add(name);
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

  /** All names with a value in this scope and the outer ones, as a scoped block sees them. */
  visibleStores(): Map<string, string> {
    const visible = new Map<string, string>();
    for (let symbols: Symbols | null = this; symbols !== null; symbols = symbols.#parent)
      for (const name of symbols.#stores) if (!visible.has(name)) visible.set(name, this.find(name)!);
    return visible;
  }
}

/** Adds the names that statements and expressions use, in order. Inner scopes are excluded. */
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
      symbols.load(node.name);
      return;
    case 'TargetName':
    case 'TargetTuple':
    case 'TargetAttribute':
      collectTarget(symbols, node, false);
      return;
    case 'If':
      collectIf(symbols, node);
      return;
    case 'Macro':
      symbols.store(node.name);
      return;
    case 'Loader':
      collectNode(symbols, node.template);
      for (const name of node.names) symbols.store(name);
      return;
    case 'Set':
      collectNode(symbols, node.value);
      collectTarget(symbols, node.target, false);
      return;
    case 'For':
      collectNode(symbols, node.iterable);
      return;
    case 'CallBlock':
      if (node.call !== null) collectNode(symbols, node.call);
      return;
    case 'FilterBlock':
      collectNode(symbols, node.filter);
      return;
    case 'With':
      collect(symbols, node.values);
      return;
    case 'SetBlock':
      collectTarget(symbols, node.target, false);
      return;
    case 'Autoescape':
    case 'Block':
      return;
    default:
      visitChildren(node, (child) => collectNode(symbols, child));
  }
}

/** An elif is an `if` inside the else branch, as in Jinja2's tree. */
function collectIf(symbols: Symbols, node: NodeOf<'If'>): void {
  const [head, ...rest] = node.branches;
  collectNode(symbols, head!.cond);
  const branches = [collectBranch(symbols, head!.body)];
  if (rest.length > 0) {
    const elifs = symbols.branch();
    for (const branch of rest) {
      collectNode(elifs, branch.cond);
      elifs.mergeBranches([collectBranch(elifs, branch.body)]);
    }
    branches.push(elifs);
  }
  if (node.otherwise.length > 0) branches.push(collectBranch(symbols, node.otherwise));
  symbols.mergeBranches(branches);
}

/** The names of one branch; an empty branch is skipped. */
function collectBranch(symbols: Symbols, body: readonly Statement[]): Symbols {
  const branch = symbols.branch();
  collect(branch, body);
  return branch;
}

/**
 * The subset of the names that are read before they are assigned, in the order of the nodes. Blocks are excluded: they are
 * separate functions.
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
