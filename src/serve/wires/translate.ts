/** The chunks of an answer -> the parts that a writer makes of them, as they arrive. */

import { bufferedIterator } from '../../common/index.ts';
import type { AnswerStream } from '../../protocol/service/index.ts';

export type PartWriter<Chunk, Part> = {
  push(chunk: Chunk): Part[];
  finish(): Part[];
  /** Returns the parts to send before the error of a failed answer. If absent, none are sent. */
  fail?(error: unknown): Part[];
};

/** Returns the parts of a stream. Leaving the loop over them ends it. */
export function translate<Chunk, Part>(
  chunks: AnswerStream<Chunk>,
  writer: PartWriter<Chunk, Part>,
): AsyncIterableIterator<Part> {
  const source = chunks[Symbol.asyncIterator]();
  let isOver = false;
  let failure: { readonly error: unknown } | null = null;
  return bufferedIterator({
    next: async () => {
      if (failure) throw failure.error;
      if (isOver) return null;
      try {
        const { done, value } = await source.next();
        if (!done) return writer.push(value);
        isOver = true;
        return writer.finish();
      } catch (error) {
        failure = { error };
        return writer.fail?.(error) ?? [];
      }
    },
    leave: () => chunks.abort(),
  });
}
