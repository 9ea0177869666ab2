/** A function of an interpreted template -> one call of it: variables, text, position. */
import { OPERATIONS } from './operations.ts';
import type { RenderState } from './python/render-state.ts';
import type { Value } from './python/values.ts';
import type { VariableContext } from './python/variable-context.ts';
import type { FunctionPlan, VariableRef } from './syntax/plans.ts';

/** One call of a function of the template. */
export class Activation {
  readonly state: RenderState;
  readonly context: VariableContext;
  readonly slots: (Value | undefined)[];
  readonly parent: Activation | null;
  at = 0;
  /** Text printed so far to the innermost buffer. */
  text = '';

  constructor(state: RenderState, context: VariableContext, code: FunctionPlan, parent: Activation | null) {
    this.state = state;
    this.context = context;
    this.slots = new Array(code.slotCount);
    this.parent = parent;
  }

  read(ref: VariableRef): Value | undefined {
    return this.#owner(ref).slots[ref.slot];
  }
  write(ref: VariableRef, value: Value | undefined): void {
    this.#owner(ref).slots[ref.slot] = value;
  }
  #owner(ref: VariableRef): Activation {
    let owner: Activation = this;
    for (let hops = ref.hops; hops > 0; hops--) owner = owner.parent!;
    return owner;
  }
  /** A call of a function that is defined in this one. */
  inner(code: FunctionPlan): Activation {
    return new Activation(this.state, this.context, code, this);
  }
  /** Runs `body` and adds the current position to its errors. */
  guard<T>(body: () => T): T {
    try {
      return body();
    } catch (error) {
      throw OPERATIONS.locate(error, this.at);
    }
  }
}
