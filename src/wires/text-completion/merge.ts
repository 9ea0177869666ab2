/** Several streams -> one, whose parts come as they come. */
import { bufferedIterator } from '../../common/index.ts';

export type MergedStream<Part> = {
  /** What is new; null at the end. One call at a time. */
  readonly next: () => Promise<readonly Part[] | null>;
  readonly close: () => void;
};

/** Merges streams; `last` gives what follows them. When one fails, or the reader leaves, all are closed. */
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
