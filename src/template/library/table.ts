/** Signatures and functions -> a table of filters or tests by name. */
import { bind, signature } from '../python/calls.ts';
import type { RenderState } from '../python/render-state.ts';
import type { Keywords, Value } from '../python/values.ts';

/** A filter or test, applied to a value. */
export type Applied<Result extends Value = Value> = (
  state: RenderState,
  value: Value,
  args: readonly Value[],
  keywords: Keywords | null,
) => Result;

/** The same with arguments in the order of the signature; undefined if missing. */
type Body<Result extends Value> = (
  state: RenderState,
  value: Value,
  args: readonly (Value | undefined)[],
) => Result;

/** Collects filters or tests by name. */
export class Table<Result extends Value = Value> extends Map<string, Applied<Result>> {
  /** `parameters` names the arguments after the value, in the notation of `signature`. */
  add(names: string, parameters: string, body: Body<Result>): void {
    for (const name of names.split(' ')) {
      const target = signature(name, parameters);
      this.set(name, (state, value, args, keywords) => body(state, value, bind(target, args, keywords)));
    }
  }
}
