/** Server-sent events of a response -> chunks of a completion. */

import { createParser } from 'eventsource-parser';
import { bufferedIterator } from '../../../common/index.ts';
import { messageOf, OnpolicyError } from '../../../errors.ts';
import { fromWireError, STREAM_END } from '../../../protocol/index.ts';
import type { OpenResponse } from './retrying-client.ts';

/** Most milliseconds that a server may take to end a body after its last event. */
const REST_MS = 1000;

/** Parses chunks. Throws the error of an event or of the connection; a stream that ends without `[DONE]` is an error. */
export function fromEventStream<Chunk>({ response, stop, toError, end }: OpenResponse): AsyncIterator<Chunk> {
  const ready: string[] = [];
  const parser = createParser({ onEvent: ({ data }) => ready.push(data) });
  const decoder = new TextDecoder(); // drops a byte order mark
  const parts = response.body[Symbol.asyncIterator]();
  let isOver = false;
  let failure: OnpolicyError | null = null;
  const finish = (rest: Promise<unknown> | undefined): void => {
    isOver = true;
    end();
    rest?.catch(() => {});
  };
  return bufferedIterator({
    next: async () => {
      if (failure) throw failure;
      if (isOver) return null;
      const chunks: Chunk[] = [];
      try {
        const { done, value } = await parts.next();
        if (done) throw new OnpolicyError('NETWORK_FAILED', 'the stream broke off before its end');
        parser.feed(decoder.decode(value, { stream: true }));
        for (const data of ready.splice(0)) {
          if (data === STREAM_END) {
            finish(readRest(parts, stop));
            break;
          }
          chunks.push(toChunk(data) as Chunk);
        }
      } catch (error) {
        finish(parts.return?.());
        failure = toError(error); // thrown after the chunks that came before it
      }
      return chunks;
    },
    leave: () => finish(parts.return?.()),
  });
}

/** Reads a body to its end, so that its connection can be reused. Closes the connection if the end takes too long. */
async function readRest(parts: AsyncIterator<Uint8Array>, stop: OpenResponse['stop']): Promise<void> {
  const onLate = (): void => stop(new OnpolicyError('ABORTED', 'the stream is over'));
  const timer = setTimeout(onLate, REST_MS);
  try {
    while (!(await parts.next()).done);
  } finally {
    clearTimeout(timer);
  }
}

function toChunk(data: string): unknown {
  let chunk: unknown;
  try {
    chunk = JSON.parse(data);
  } catch (error) {
    const text = `the server sent an event that is not JSON: ${messageOf(error)}`;
    throw new OnpolicyError('NETWORK_FAILED', text);
  }
  const { error } = chunk as { error?: unknown };
  if (typeof error === 'object' && error !== null) throw fromWireError(error as Record<string, unknown>);
  return chunk;
}
