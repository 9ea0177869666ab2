/** The variables of one generated function -> their slots, and the position of the scope pass among the functions. */
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
  /** Final after the whole function was planned. */
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

/** The position of the pass. */
export type Frame = {
  readonly symbols: Symbols;
  readonly code: FunctionScope;
  /** In the root and in `if` inside it: assignments are exported. */
  readonly isTopLevel: boolean;
  /** Inside `if`: an unknown filter is an error only if it is reached. */
  readonly isSoft: boolean;
  /** Whether break and continue are inside a loop. */
  readonly hasLoop: boolean;
  /** Identifiers of parameters that may have no value yet while defaults are evaluated. */
  readonly pending: ReadonlySet<string> | null;
};
