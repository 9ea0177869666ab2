/**
 * Many requests out of a file or an iterable -> their answers in a file. Reading order: `run`; then `source`, `row`, `window` (in),
 * `urls` (to the service and back), `lines`, `journal` (out).
 */
import { bufferedIterator } from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';
import {
  type BatchOptions,
  type BatchRow,
  type BatchRun,
  type BatchSource,
  type BatchSummary,
  checkArguments,
  withDefaults,
} from '../../protocol/index.ts';
import { createRun, type Run, type RunInput } from './run.ts';

export { type AnswerRow, answerRows, isBatchUrl, urlFault } from './urls.ts';

/** Rows in flight of a service that runs 64 sequences at once, the default of `maxSequences`. */
export const ROWS_AT_ONCE = 128;

/** Returns the rows in flight of a service. */
export function rowsAtOnceOf(service: object): number {
  return (service as { readonly rowsAtOnce?: number }).rowsAtOnce ?? ROWS_AT_ONCE;
}

/** The service that answers the rows, its default model, and how many rows it gets at once. */
export type BatchService = Pick<RunInput, 'answer' | 'defaultModel' | 'concurrency'>;

/**
 * Makes a batch, which starts when `done` is read or its rows are iterated.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options
 */
export function createBatch(service: BatchService, source: BatchSource, given: BatchOptions = {}): BatchRun {
  const options = withDefaults('BatchOptions', checkArguments('BatchOptions', given));
  let done: Promise<BatchSummary> | null = null;
  const start = (run: Run): Promise<BatchSummary> => {
    done = run.run();
    done.catch(() => {}); // `done` reports the error to its readers
    return done;
  };
  return {
    get done() {
      return done ?? start(createRun({ ...service, source, options, deliver: null }));
    },
    [Symbol.asyncIterator]() {
      if (done) throw new OnpolicyError('CONFLICT', 'the rows of a batch can be read once, from its start');
      // The run and the reader wait for each other, so no rows pile up between them.
      const { readable, writable } = new TransformStream<readonly BatchRow[]>();
      const [writer, reader] = [writable.getWriter(), readable.getReader()];
      const deliver = (rows: readonly BatchRow[]) => writer.write(rows).catch(() => {}); // the reader has left
      const run = createRun({ ...service, source, options, deliver });
      start(run)
        .then(() => writer.close())
        .catch((error: unknown) => writer.abort(error))
        .catch(() => {}); // the reader has left
      return bufferedIterator({
        next: async () => (await reader.read()).value ?? null,
        leave: () => {
          reader.cancel().catch(() => {}); // the run has failed
          run.end(new OnpolicyError('ABORTED', 'the reader of the batch has left'));
        },
      });
    },
  };
}
