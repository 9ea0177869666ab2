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
  /** For a branch of an `if`: the scope as it was before the branch. The maps below then hold only what is new. */
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

  /** The identifier of a name, or undefined when no scope up to the root knows it. */
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

  /** A name that is written. Until then it shows the outer variable, or nothing. */
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

  /** The same scope for one branch of an `if`: what the branch adds stays in the branch until it is merged. */
  branch(): Symbols {
    return new Symbols(this.#parent, this);
  }

  /** Takes over what the branches of an `if` found. What only some branches write falls back to the outside. */
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

/** An elif is an `if` of its own inside the branch of all elifs, as in Jinja2's tree. */
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

/** The names of one branch, on top of those before it. An empty branch adds nothing, so it is left out. */
function collectBranch(symbols: Symbols, body: readonly Statement[]): Symbols {
  const branch = symbols.branch();
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
