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
import { Run, type RunInput } from './run.ts';

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
      return done ?? start(new Run({ ...service, source, options, deliver: null }));
    },
    [Symbol.asyncIterator]() {
      if (done) throw new OnpolicyError('CONFLICT', 'the rows of a batch can be read once, from its start');
      const channel = new Channel();
      const run = new Run({ ...service, source, options, deliver: (rows) => channel.put(rows) });
      channel.endWith(start(run));
      const leave = (): void => {
        channel.leave();
        run.end(new OnpolicyError('ABORTED', 'the reader of the batch has left'));
      };
      return bufferedIterator({ next: () => channel.take(), leave });
    },
  };
}

/** Rows from a run to its reader, some at a time: the run waits for the reader. */
class Channel {
  #rows: readonly BatchRow[] | null = null;
  #end: Promise<null> | null = null;
  #isLeft = false;
  #taken: (() => void) | null = null;
  #given: (() => void) | null = null;

  async put(rows: readonly BatchRow[]): Promise<void> {
    if (this.#isLeft) return;
    this.#rows = rows;
    this.#given?.();
    await new Promise<void>((resolve) => {
      this.#taken = resolve;
    });
  }

  /** Resolves with null after the last rows. */
  async take(): Promise<readonly BatchRow[] | null> {
    if (!this.#rows) {
      const given = new Promise<null>((resolve) => {
        this.#given = () => resolve(null);
      });
      await Promise.race([given, this.#end]);
    }
    const rows = this.#rows;
    this.#rows = null;
    this.#taken?.();
    return rows;
  }

  endWith(done: Promise<unknown>): void {
    this.#end = done.then(() => null);
    this.#end.catch(() => {}); // a reader that waits hears of it
  }

  leave(): void {
    this.#isLeft = true;
    this.#taken?.();
  }
}
