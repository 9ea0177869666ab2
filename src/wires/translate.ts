/** The chunks of an answer -> what a writer makes of them, as they come. */
import type { AnswerStream } from '../answer/index.ts';
import { bufferedIterator } from '../common/index.ts';

export type PartWriter<Chunk, Part> = {
  push(chunk: Chunk): Part[];
  finish(): Part[];
  /** Parts before the error of an answer that fails. Absent: none. */
  fail?(error: unknown): Part[];
};

/** The parts of a stream. Leaving them ends it. */
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
