/** Signatures and functions -> a table of filters. */
import { bind, signature } from '../python/calls.ts';
import type { RenderState } from '../python/render-state.ts';
import type { Keywords, Value } from '../python/values.ts';

/** A filter. The first argument is the filtered value. */
export type TemplateFilter = (state: RenderState, args: readonly Value[], keywords: Keywords | null) => Value;

/** The arguments in the order of the signature; undefined if missing. The first one is never missing. */
export type FilterBody = (state: RenderState, value: Value, args: readonly (Value | undefined)[]) => Value;

/** Collects filters by name. */
export class FilterTable {
  readonly filters = new Map<string, TemplateFilter>();

  /** `parameters` names the arguments after the value, in the notation of `signature`. */
  add(names: string, parameters: string, body: FilterBody): void {
    for (const name of names.split(' ')) {
      const target = signature(name, `value ${parameters}`);
      this.filters.set(name, (state, args, keywords) => {
        const [value, ...rest] = bind(target, args, keywords);
        return body(state, value!, rest);
      });
    }
  }

  /** Adds a filter that binds its arguments itself. */
  addRaw(name: string, filter: TemplateFilter): void {
    this.filters.set(name, filter);
  }
}
