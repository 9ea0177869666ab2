/** Signatures and bodies -> a table by name of the filters, the tests, or the methods of a type. */
import { bind, signature } from './calls.ts';
import type { RenderState } from './render-state.ts';
import type { Keywords, Value } from './values.ts';

/** A filter, a test or a method, applied to a value. */
export type Applied<Result extends Value = Value, Self extends Value = Value> = (
  state: RenderState,
  value: Self,
  args: readonly Value[],
  keywords: Keywords | null,
) => Result;

/** An implementation, called with arguments in the order of the signature. A missing argument is undefined. */
type Body<Result extends Value, Self extends Value> = (
  state: RenderState,
  value: Self,
  args: readonly (Value | undefined)[],
) => Result;

/** Collects filters, tests or methods by name. */
export class Table<Result extends Value = Value, Self extends Value = Value> extends Map<
  string,
  Applied<Result, Self>
> {
  /** Adds an entry. `parameters` names the arguments after the value, in the notation of `signature`. */
  add(names: string, parameters: string, body: Body<Result, Self>): this {
    for (const name of names.split(' ')) {
      const target = signature(name, parameters);
      this.set(name, (state, value, args, keywords) => body(state, value, bind(target, args, keywords)));
    }
    return this;
  }
}
