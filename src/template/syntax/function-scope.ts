/** The variables of one generated function -> their slots; and where among the functions a pass over the tree stands. */
import type { FunctionPlan, VariableRef } from './plans.ts';
import type { Symbols } from './symbols.ts';

/** A function of the generated code, with the slots of its variables. */
export class FunctionScope {
  readonly id: number;
  readonly parent: FunctionScope | null;
  readonly #slots = new Map<string, number>();

  constructor(id: number, parent: FunctionScope | null) {
    this.id = id;
    this.parent = parent;
  }
  declare(identifier: string): void {
    if (!this.#slots.has(identifier)) this.#slots.set(identifier, this.#slots.size);
  }
  find(identifier: string): VariableRef {
    let hops = 0;
    for (let scope: FunctionScope | null = this; scope !== null; scope = scope.parent, hops++) {
      const slot = scope.#slots.get(identifier);
      if (slot !== undefined) return { functionId: scope.id, slot, hops };
    }
    throw new Error(`no scope declares ${identifier}`);
  }
  /** Read after the whole function was planned. */
  get plan(): FunctionPlan {
    const slots = this.#slots;
    return {
      functionId: this.id,
      get slotCount() {
        return slots.size;
      },
    };
  }
}

/** Where the pass stands. */
export type Frame = {
  readonly symbols: Symbols;
  readonly code: FunctionScope;
  /** The root, and `if` inside of it: assignments are exported. */
  readonly isTopLevel: boolean;
  /** Inside `if`: an unknown filter is an error only when it is reached. */
  readonly isSoft: boolean;
  /** Whether break and continue have a loop. */
  readonly hasLoop: boolean;
  /** Identifiers of parameters that may not have a value yet, while defaults are evaluated. */
  readonly pending: ReadonlySet<string> | null;
};
