/** The types of plans: the slot of every variable, and the actions on entry and exit of a scope. */
import type { MacroShape } from '../python/macros.ts';

/** A variable: a slot of the function that is `hops` levels outside the current one. */
export type VariableRef = { readonly functionId: number; readonly slot: number; readonly hops: number };

/** How a variable gets its value on entry to its scope. */
export type EnterAction =
  | { readonly kind: 'resolve'; readonly ref: VariableRef; readonly name: string } // from the context
  | { readonly kind: 'alias'; readonly ref: VariableRef; readonly from: VariableRef } // from an outer scope
  | { readonly kind: 'clear'; readonly ref: VariableRef };

/** A scope within a function. */
export type FramePlan = { readonly enter: readonly EnterAction[]; readonly leave: readonly VariableRef[] };

/** A function of the generated code: root, block, macro, recursive loop, loop filter. */
export type FunctionPlan = { readonly functionId: number; readonly slotCount: number };

/** An assignment target with its variables. */
export type ResolvedTarget =
  | { readonly kind: 'name'; readonly ref: VariableRef }
  | { readonly kind: 'tuple'; readonly items: readonly ResolvedTarget[] }
  | {
      readonly kind: 'attribute';
      readonly ref: VariableRef;
      readonly name: string;
      readonly attribute: string;
    };

/** Names that a top-level assignment makes visible to blocks. */
export type Export = { readonly name: string; readonly ref: VariableRef };

export type SetPlan = { readonly target: ResolvedTarget; readonly exports: readonly Export[] };

/** Whether printed values are escaped; `dynamic` if known only at run time. */
export type OutputPlan = { readonly escape: boolean | 'dynamic' };

export type MacroPlan = {
  readonly shape: MacroShape;
  readonly code: FunctionPlan;
  readonly frame: FramePlan;
  /** Slots of parameters, then caller, kwargs and varargs as far as used. */
  readonly arguments: readonly VariableRef[];
  /** The variable of the macro; null for call blocks. */
  readonly target: VariableRef | null;
  readonly exports: readonly Export[];
};

export type CallBlockPlan = Omit<MacroPlan, 'target' | 'exports'> & { readonly escape: boolean | 'dynamic' };

export type ForPlan = {
  /** Not null if the body uses `loop`. */
  readonly loop: VariableRef | null;
  readonly target: ResolvedTarget;
  readonly frame: FramePlan;
  readonly otherwise: FramePlan | null;
  readonly test: {
    readonly code: FunctionPlan;
    readonly target: ResolvedTarget;
    readonly frame: FramePlan;
  } | null;
  /** The function of a recursive loop. */
  readonly recursion: FunctionPlan | null;
};

/** The code of a block. */
export type BlockPlan = {
  readonly name: string;
  readonly code: FunctionPlan;
  readonly frame: FramePlan;
  readonly self: VariableRef | null;
  readonly superBlock: VariableRef | null;
};

export type RootPlan = {
  readonly code: FunctionPlan;
  readonly frame: FramePlan;
  readonly self: VariableRef | null;
  readonly blocks: readonly BlockPlan[];
  /** Names that the template reads from its context, without globals. */
  readonly variables: ReadonlySet<string>;
};
