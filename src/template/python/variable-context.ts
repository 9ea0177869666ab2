/** A name -> its value outside all scopes of the template: exports and the caller's variables; and its blocks. */
import type { RenderState } from './render-state.ts';
import type { Value } from './values.ts';

/** Renders a block of the template into text, in a given context. */
export type BlockFunction = (state: RenderState, context: VariableContext) => string;

/** Exported top-level names hide the caller's variables. */
export class VariableContext {
  readonly exported = new Map<string, Value>();
  readonly blocks: ReadonlyMap<string, BlockFunction>;
  readonly #given: ReadonlyMap<string, Value>;
  readonly #outer: VariableContext | null;

  constructor(
    given: ReadonlyMap<string, Value>,
    blocks: ReadonlyMap<string, BlockFunction>,
    outer: VariableContext | null = null,
  ) {
    this.#given = given;
    this.blocks = blocks;
    this.#outer = outer;
  }

  /** The value of `name`, or undefined. */
  resolve(name: string): Value | undefined {
    if (this.exported.has(name)) return this.exported.get(name);
    if (this.#given.has(name)) return this.#given.get(name);
    return this.#outer?.resolve(name);
  }

  /** A context in which `locals` hide other names. For scoped blocks. */
  derive(locals: ReadonlyMap<string, Value>): VariableContext {
    return new VariableContext(locals, this.blocks, this);
  }
}
