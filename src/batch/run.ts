/** Rows and a service -> their answers in files, each once, however often the run is killed and resumed. */
import { setMaxListeners } from 'node:events';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { limitedSignal } from '../common/index.ts';
import { fromNative, OnpolicyError } from '../errors.ts';
import {
  type BatchRow,
  type BatchSource,
  type BatchSummary,
  type Complete,
  fault,
  throwFaults,
} from '../protocol/index.ts';
import { answeredRow, failedRow, faultyRow, requestIdOf, sharedBody } from './answered-row.ts';
import { InFlight } from './in-flight.ts';
import { Journal, type RunFacts, type RunFiles } from './journal.ts';
import { Lines } from './lines.ts';
import { type FaultyRow, hashOf, type Row, toRow } from './row.ts';
import { HashSet } from './row-hashes.ts';
import { openSource, type Source } from './source.ts';
import { type Tokens, Totals, tokensOf } from './totals.ts';
import type { AnswerRow } from './urls.ts';
import { RowWindow } from './window.ts';

/** Rows read ahead, by the order of the output. */
const WINDOW = { completion: 4096, input: 512 } as const;
/** Answers that are kept for equal rows. */
const MOST_ANSWERS = 1024;
const FIRST_PAUSE_MS = 250;
const BUSY_PAUSE_MS = 1000;

/** Failures that may pass. */
const PASSING = new Set<OnpolicyError['code']>(['NETWORK_FAILED', 'CLOSED', 'BACKEND_FAILED']);
/** Failures that every row would have: the run ends, and no row has failed. */
const OF_ALL_ROWS = new Set<OnpolicyError['code']>([
  'NETWORK_FAILED',
  'CLOSED',
  'UNAUTHORIZED',
  'NATIVE_UNAVAILABLE',
  'STORE_FAILED',
]);

/** What a run is made of. */
export type RunInput = {
  readonly answer: AnswerRow;
  readonly source: BatchSource;
  readonly options: Complete['BatchOptions'];
  /** The model of rows that name none. */
  readonly defaultModel: string | null;
  /** Takes rows that are done; resolves when there is room for more. */
  readonly deliver: ((rows: readonly BatchRow[]) => Promise<void>) | null;
};

/** An answer that equal rows share. */
type Known = { readonly row: Row; readonly answer: Promise<object> };

/** One run over the rows. */
export class Run {
  readonly #input: RunInput;
  readonly #options: Complete['BatchOptions'];
  readonly #window: number;
  readonly #inFlight: InFlight;
  readonly #totals: Totals;
  readonly #answers = new Map<string, Known>(); // by hash of the request, oldest first
  readonly #ids = new HashSet();
  readonly #stop = new AbortController();
  #lines!: Lines;
  #waitingForEqual = 0;
  #wake: (() => void) | null = null;

  constructor(input: RunInput) {
    const { options } = input;
    this.#input = input;
    this.#options = options;
    this.#window = options.window ?? WINDOW[options.order];
    this.#inFlight = new InFlight(options.concurrency);
    this.#totals = new Totals(options.onProgress);
    setMaxListeners(0, this.#stop.signal); // every row listens to it
  }

  /** Ends the run; rows in flight have no line. The first reason stays. */
  end(reason: unknown): void {
    this.#stop.abort(reason);
    this.#wake?.();
  }

  /** Answers all rows. */
  async run(): Promise<BatchSummary> {
    const { signal, onProgress } = this.#options;
    const abort = (): void => this.end(abortedBy(signal));
    signal?.addEventListener('abort', abort);
    if (signal?.aborted) abort();
    try {
      await this.#runOver(await openSource(this.#input.source));
      return this.#totals.summary();
    } catch (error) {
      throw this.#stop.signal.aborted ? this.#stop.signal.reason : fromNative(error);
    } finally {
      signal?.removeEventListener('abort', abort);
      if (onProgress) this.#totals.tell();
    }
  }

  async #runOver(source: Source): Promise<void> {
    const files = filesOf(this.#options);
    const journal = files
      ? await Journal.open(files, factsOf(this.#input, source), this.#options.resume)
      : null;
    this.#totals.totalBytes = source.bytes;
    if (journal) [this.#totals.completed, this.#totals.failed] = journal.done.counts;
    this.#totals.resumed = this.#totals.completed + this.#totals.failed;
    this.#lines = new Lines({
      journal,
      deliver: this.#input.deliver,
      inOrder: this.#options.order === 'input',
      onWritten: () => this.#wake?.(),
      onFailure: (error) => this.end(fromNative(error)),
    });
    try {
      await this.#answerAll(new RowWindow(this.#rows(source, journal), this.#window));
    } catch (error) {
      this.end(error);
    } finally {
      while (this.#totals.running > 0) await this.#change();
      await this.#lines.settled();
      await source.items.return?.();
      await journal?.close();
    }
    this.#stop.signal.throwIfAborted();
  }

  /** Rows that have no line yet, as many at once as were read. */
  async *#rows({ items }: Source, journal: Journal | null): AsyncGenerator<readonly (Row | FaultyRow)[]> {
    let last = 0;
    const done = journal?.done.hashes;
    for (let part = await items.next(); !part.done; part = await items.next()) {
      const rows: (Row | FaultyRow)[] = [];
      for (const item of part.value) {
        const row = await toRow(item, this.#options);
        const isNew = row.customId === null || this.#ids.add(hashOf(row.customId));
        last = row.line;
        if (done?.has(row.line)) {
          if (!done.matches(row.line, row.hash)) throw changed(`line ${row.line} is another one`);
          this.#totals.skip(row.bytes);
          continue;
        }
        this.#lines.expect(row.line);
        rows.push(isNew || 'error' in row ? row : { ...row, error: repeated(row.customId!) });
      }
      yield rows;
    }
    if (done && done.lastLine > last) throw changed(`it had a line ${done.lastLine}`);
  }

  async #answerAll(window: RowWindow): Promise<void> {
    for (;;) {
      while (this.#isFull && !this.#stop.signal.aborted) await this.#change();
      this.#stop.signal.throwIfAborted();
      const row = await window.next();
      if (!row) break;
      if ('error' in row) this.#fail(row, faultyRow(row, row.error), row.error);
      else void this.#answer(row);
    }
    while (this.#totals.running + this.#waitingForEqual > 0) await this.#change();
  }

  get #isFull(): boolean {
    const isBusy = this.#totals.running >= this.#inFlight.level;
    return isBusy || this.#waitingForEqual >= this.#window || this.#lines.isFull;
  }

  /** Resolves when a row ends or the run does. */
  async #change(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.#wake = null;
  }

  /** Never rejects. */
  async #answer(row: Row): Promise<void> {
    const known = row.sameAs === null ? undefined : this.#answers.get(row.sameAs);
    try {
      if (known && (await this.#share(known, row))) return;
      const body = await this.#compute(row);
      const tokens = tokensOf(body);
      this.#inFlight.answered(tokens.prompt + tokens.completion);
      this.#finish(row, body, tokens);
    } catch (thrown) {
      const error = fromNative(thrown);
      if (this.#stop.signal.aborted) return;
      if (OF_ALL_ROWS.has(error.code)) this.end(error);
      else this.#fail(row, failedRow(row, error), error);
    } finally {
      this.#wake?.();
    }
  }

  /** Gives a row the answer of an equal one. False: that one has none. */
  async #share({ row: from, answer }: Known, row: Row): Promise<boolean> {
    this.#waitingForEqual += 1;
    const body = await answer.catch(() => null);
    this.#waitingForEqual -= 1;
    if (!body || this.#stop.signal.aborted) return false;
    this.#totals.shared += 1;
    this.#finish(row, sharedBody(body, from, row), null);
    return true;
  }

  async #compute(row: Row): Promise<object> {
    this.#totals.running += 1;
    const answer = this.#ask(row);
    const { sameAs } = row;
    if (sameAs !== null) {
      this.#answers.set(sameAs, { row, answer });
      for (const oldest of this.#answers.keys()) {
        if (this.#answers.size <= MOST_ANSWERS) break;
        this.#answers.delete(oldest);
      }
    }
    try {
      return await answer;
    } catch (error) {
      if (sameAs !== null) this.#answers.delete(sameAs);
      throw error;
    } finally {
      this.#totals.running -= 1;
    }
  }

  /** Asks until there is an answer, or an error that stays. */
  async #ask(row: Row): Promise<object> {
    const { retries, timeoutMs, background } = this.#options;
    const call = { traceId: requestIdOf(row), background };
    for (let tries = 0; ; ) {
      this.#stop.signal.throwIfAborted();
      using limited = limitedSignal(this.#stop.signal, timeoutMs);
      try {
        return await this.#input.answer(row.url, row.body, { ...call, signal: limited.signal! });
      } catch (thrown) {
        const error = fromNative(thrown);
        const reason: unknown = limited.signal?.reason;
        if (reason instanceof OnpolicyError && reason.code === 'TIMEOUT') throw reason;
        if (error.code === 'OVERLOADED') {
          this.#inFlight.refused();
          await this.#pause(error.retryAfterMs ?? BUSY_PAUSE_MS);
        } else if (PASSING.has(error.code) && tries < retries) {
          await this.#pause(error.retryAfterMs ?? FIRST_PAUSE_MS * 2 ** tries);
          tries += 1;
        } else throw error;
      }
    }
  }

  async #pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#stop.signal }).catch(() => {}); // the next try sees it
  }

  #finish(row: Row, body: object, tokens: Tokens | null): void {
    this.#totals.end(row.bytes, false, tokens);
    this.#lines.add({ place: row, kind: 0, row: answeredRow(row, body) });
  }

  #fail(place: Row | FaultyRow, row: BatchRow, error: OnpolicyError): void {
    this.#totals.end(place.bytes, true, null);
    this.#lines.add({ place, kind: 1, row });
    const { maxFailures } = this.#options;
    if (maxFailures === null || this.#totals.failed <= maxFailures) return;
    const msg = `${this.#totals.failed} rows have failed, and ${maxFailures} may; the last one is line ${place.line}: ${error.message}`;
    this.end(new OnpolicyError(error.code, msg, { cause: error }));
  }
}

/** The files of a run; null: it has none. */
function filesOf({ output, errors, resume }: Complete['BatchOptions']): RunFiles | null {
  if (output === null) {
    throwFaults([
      ...(errors === null ? [] : [fault(['errors'], 'conflict', 'an output beside it', errors)]),
      ...(resume ? [fault(['resume'], 'conflict', 'an output, which says where to go on', resume)] : []),
    ]);
    return null;
  }
  const { dir, name, ext } = path.parse(output);
  const files = { output, errors: errors ?? path.join(dir, `${name}.errors${ext}`) };
  if (path.resolve(files.errors) === path.resolve(output))
    throwFaults([fault(['errors'], 'conflict', 'another file than the output', errors)]);
  return files;
}

/** What a resumed run must have in common with the first one. */
function factsOf({ options, defaultModel }: RunInput, { bytes }: Source): RunFacts {
  const { model, seed, url, order } = options;
  return { 'length of the input': bytes, model: model ?? defaultModel, seed, url, order };
}

function changed(what: string): OnpolicyError {
  const msg = `resume: the input has changed since the run began: ${what}`;
  return new OnpolicyError('CONFLICT', msg, { param: 'resume' });
}

function repeated(customId: string): OnpolicyError {
  const msg = `custom_id: expected an id that no earlier row has, got ${JSON.stringify(customId)}`;
  return new OnpolicyError('INVALID_REQUEST', msg, { param: 'custom_id' });
}

function abortedBy(signal: AbortSignal | null): OnpolicyError {
  return new OnpolicyError('ABORTED', 'the batch was ended before its last row', { cause: signal?.reason });
}
