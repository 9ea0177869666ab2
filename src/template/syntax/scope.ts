/** Statements of a scope -> a slot for each assigned variable, and the slots that may hold the value of a name, by Jinja2's static rules. */
import type { AnyNode, Statement, Target } from './nodes.ts';
import { visitChildren } from './walk.ts';

/** Code that gets a new frame on each call: the template, a macro, a recursive loop. Counts the slots of its frames. */
export type FunctionScope = { readonly outer: FunctionScope | null; slotCount: number };

/** A slot of the frame that is `hops` functions outside the current one. */
export type SlotReference = { readonly slot: number; readonly hops: number };

type Variable = {
  readonly slot: number;
  /** True if the name is undefined when this slot has no value. Outer scopes are then not searched. */
  readonly isFinal: boolean;
};

/** The variables of a template, a loop, a macro, or a block with its own variables. */
export class Scope {
  readonly code: FunctionScope;
  /** True if the scope is inside a loop, so that `break` and `continue` are allowed. */
  readonly hasLoop: boolean;
  /** Slots of names that the template reads from its input. Used only in the outermost scope. */
  readonly inputs = new Map<string, number>();
  readonly #outer: Scope | null;
  readonly #variables = new Map<string, Variable>();
  readonly #mentioned = new Set<string>();
  /** Slots of variables that have no value when the scope begins. */
  readonly assigned: number[] = [];
  /** True if the scope is a `block`, which sees only values of the template and of its input. */
  readonly #isBlock: boolean;

  constructor(code: FunctionScope, outer: Scope | null = null, hasLoop = false, isBlock = false) {
    this.code = code;
    this.hasLoop = hasLoop;
    this.#outer = outer;
    this.#isBlock = isBlock;
  }

  /** Returns a scope inside this one, in the same function or a new one. */
  inner(code: FunctionScope = this.code, hasLoop = code === this.code && this.hasLoop): Scope {
    return new Scope(code, this, hasLoop);
  }

  /** Returns the scope of a `block` inside this one. */
  block(): Scope {
    return new Scope(this.code, this.#root, false, true);
  }

  get #root(): Scope {
    return this.#outer === null ? this : this.#outer.#root;
  }

  /** Declares a name that gets its value from the scope, for example a macro parameter or `loop`. Returns its slot. */
  parameter(name: string): number {
    const slot = this.code.slotCount++;
    this.#variables.set(name, { slot, isFinal: true });
    this.#mentioned.add(name);
    return slot;
  }

  /** Declares the names of a loop target or of `with`. */
  parameters(target: Target): void {
    if (target.typename === 'TargetTuple') for (const item of target.items) this.parameters(item);
    else if (target.typename === 'TargetName') this.parameter(target.name);
  }

  /** Declares the names that nodes assign, in source order. Skips inner scopes. */
  collect(nodes: Iterable<AnyNode>, isConditional = false): void {
    for (const node of nodes) this.#collect(node, isConditional);
  }

  #collect(node: AnyNode, isConditional: boolean): void {
    switch (node.typename) {
      case 'Symbol':
      case 'TargetAttribute':
        this.#mentioned.add(node.name);
        return;
      case 'TargetName':
      case 'Macro':
        this.#assign(node.name, isConditional);
        return;
      case 'If':
        for (const { cond, body } of node.branches) {
          this.#collect(cond, true);
          this.collect(body, true);
        }
        this.collect(node.otherwise, true);
        return;
      case 'Set':
        this.collect([node.value, node.target], isConditional);
        return;
      case 'SetBlock':
        this.#collect(node.target, isConditional);
        return;
      case 'For':
        this.#collect(node.iterable, true);
        return;
      case 'CallBlock':
        this.#collect(node.call, true);
        return;
      case 'FilterBlock':
        this.#collect(node.filter, true);
        return;
      case 'With':
        this.collect(node.values);
        return;
      case 'Generation':
      case 'Block':
        return;
      default:
        visitChildren(node, (child) => this.#collect(child, isConditional));
    }
  }

  /** Declares an assigned name. If it is always assigned before it is read, and not assigned outside, it is not read from outside. */
  #assign(name: string, isConditional: boolean): void {
    if (!this.#variables.has(name)) {
      const slot = this.code.slotCount++;
      this.assigned.push(slot);
      this.#variables.set(name, { slot, isFinal: !isConditional && !this.isMentioned(name) });
    }
    this.#mentioned.add(name);
  }

  /** Returns true if this scope or an outer one reads or assigns a name. */
  isMentioned(name: string): boolean {
    return this.#mentioned.has(name) || this.#outer?.isMentioned(name) === true;
  }

  slotOf(name: string): number {
    return this.#variables.get(name)!.slot;
  }

  /** Returns the slots that may hold the value of a name. The first slot with a value counts. */
  find(name: string): SlotReference[] {
    const places: SlotReference[] = [];
    let isInBlock = false;
    for (let scope: Scope | null = this; scope !== null; scope = scope.#outer) {
      const variable = scope.#variables.get(name);
      if (variable !== undefined) {
        places.push({ slot: variable.slot, hops: this.#hopsTo(scope.code) });
        if (variable.isFinal && !isInBlock) return places;
      }
      isInBlock ||= scope.#isBlock;
    }
    const root = this.#root;
    let slot = root.inputs.get(name);
    if (slot === undefined) {
      slot = root.code.slotCount++;
      root.inputs.set(name, slot);
    }
    return [...places, { slot, hops: this.#hopsTo(root.code) }];
  }

  #hopsTo(code: FunctionScope): number {
    let hops = 0;
    for (let at = this.code; at !== code; at = at.outer!) hops++;
    return hops;
  }
}

/** Returns the names that are read before they are assigned, in source order. Skips blocks. */
export function readNames(nodes: readonly Statement[], names: readonly string[]): ReadonlySet<string> {
  const open = new Set(names);
  const found = new Set<string>();
  const visit = (node: AnyNode): void => {
    if (node.typename === 'Symbol') {
      if (open.has(node.name)) found.add(node.name);
    } else if (node.typename === 'TargetName') open.delete(node.name);
    else if (node.typename !== 'Block') visitChildren(node, visit);
  };
  for (const node of nodes) visit(node);
  return found;
}
