/**
 * Many requests out of a file or an iterable -> their answers in a file. Reading order: `run`; then `source`, `row`, `window` (in),
 * `urls`, `in-flight` (to the service and back), `lines`, `journal` (out).
 */
import { bufferedIterator } from '../common/index.ts';
import { OnpolicyError } from '../errors.ts';
import {
  type BatchOptions,
  type BatchRow,
  type BatchRun,
  type BatchSource,
  type BatchSummary,
  checkArguments,
  withDefaults,
} from '../protocol/index.ts';
import { createRun, type Run, type RunInput } from './run.ts';

export { type AnswerRow, answerRows, isBatchUrl, urlFault } from './urls.ts';

/** What rows are answered by. */
export type BatchService = Pick<RunInput, 'answer' | 'defaultModel'>;

/**
 * Makes a batch, which runs when it is first looked at.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options
 */
export function createBatch(service: BatchService, source: BatchSource, given: BatchOptions = {}): BatchRun {
  const options = withDefaults('BatchOptions', checkArguments('BatchOptions', given));
  let done: Promise<BatchSummary> | null = null;
  const start = (run: Run): Promise<BatchSummary> => {
    done = run.run();
    done.catch(() => {}); // whoever looks at it hears of it
    return done;
  };
  return {
    get done() {
      return done ?? start(createRun({ ...service, source, options, deliver: null }));
    },
    [Symbol.asyncIterator]() {
      if (done) throw new OnpolicyError('CONFLICT', 'the rows of a batch can be read once, from its start');
      // Run and reader wait for each other: nothing is kept between them.
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
