/** Several streams -> one, with the parts in the order in which they arrive. */
import { bufferedIterator } from '../../common/index.ts';

export type MergedStream<Part> = {
  /** Returns the new parts, or null at the end. Must not be called while a call is pending. */
  readonly next: () => Promise<readonly Part[] | null>;
  readonly close: () => void;
};

/** Merges streams. `last` returns the parts to append at the end. If a stream fails or the reader leaves, all are closed. */
export function merge<Part>(
  sources: readonly MergedStream<Part>[],
  last: () => readonly Part[],
): AsyncIterableIterator<Part> {
  const arrived: Part[] = [];
  const idle = new Set(sources); // to be asked for their next parts
  let open = sources.length;
  let failure: { readonly error: unknown } | null = null;
  let hasEnded = false;
  let wake: (() => void) | null = null;
  const closeAll = (): void => {
    for (const source of sources) source.close();
  };
  const ask = async (source: MergedStream<Part>): Promise<void> => {
    try {
      const parts = await source.next();
      if (parts === null) open -= 1;
      else idle.add(source);
      for (const part of parts ?? []) arrived.push(part);
    } catch (error) {
      failure ??= { error };
    }
    wake?.();
  };
  return bufferedIterator({
    next: async () => {
      for (const source of idle) {
        idle.delete(source);
        void ask(source);
      }
      while (arrived.length === 0 && idle.size === 0 && open > 0 && !failure)
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      if (failure) {
        closeAll();
        throw failure.error;
      }
      if (arrived.length > 0 || open > 0) return arrived.splice(0);
      if (hasEnded) return null;
      hasEnded = true;
      return last();
    },
    leave: closeAll,
  });
}
