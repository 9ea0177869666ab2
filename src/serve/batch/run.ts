/** Rows and a service -> their answers in files, each once, however often the run is killed and resumed. */
import { setMaxListeners } from 'node:events';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { limitedSignal, onAbort } from '../../common/index.ts';
import { fromNative, OnpolicyError } from '../../errors.ts';
import {
  type BatchRow,
  type BatchSource,
  type BatchSummary,
  type ChatCompletion,
  type Complete,
  fault,
  readerOfRequest,
  throwFaults,
} from '../../protocol/index.ts';
import { readAnswer } from '../../protocol/service/index.ts';
import {
  answeredRow,
  failedRow,
  faultyRow,
  isCut,
  type RowAnswer,
  requestIdOf,
  sharedBody,
  toRowAnswer,
  withParsed,
} from './answered-row.ts';
import { type Journal, openJournal, type RunFacts, type RunFiles } from './journal.ts';
import { Lines } from './lines.ts';
import { type FaultyRow, hashOf, type Row, toRow } from './row.ts';
import { openSource, type RowSource } from './source.ts';
import { type Tokens, Totals, tokensOf } from './totals.ts';
import type { AnswerRow } from './urls.ts';
import { inWindows } from './window.ts';
import { writtenRows } from './written.ts';

/** Number of rows that are read ahead, by the order of the output. */
const WINDOW = { completion: 4096, input: 512 } as const;
/** Number of answers that are kept for equal rows. */
const MOST_ANSWERS = 1024;
/** Number of ignored fields that are reported per row. */
const MOST_IGNORED = 20;
const OK = 200;
const FIRST_PAUSE_MS = 250;
const BUSY_PAUSE_MS = 1000;

/** Codes of temporary failures, which are retried. */
const PASSING = new Set<OnpolicyError['code']>(['NETWORK_FAILED', 'CLOSED', 'BACKEND_FAILED']);
/** Codes of failures that every row would have. They end the run, and no row is marked as failed. */
const OF_ALL_ROWS = new Set<OnpolicyError['code']>([
  'NETWORK_FAILED',
  'CLOSED',
  'UNAUTHORIZED',
  'NATIVE_UNAVAILABLE',
  'STORE_FAILED',
]);

/** The input of a run: its rows, its options and the service that answers. */
export type RunInput = {
  readonly answer: AnswerRow;
  readonly source: BatchSource;
  readonly options: Complete['BatchOptions'];
  /** Model of rows that do not name one. */
  readonly defaultModel: string | null;
  /** Rows in flight if the options do not set it. */
  readonly concurrency: number;
  /** Takes finished rows. Resolves when there is room for more. */
  readonly deliver: ((rows: readonly BatchRow[]) => Promise<void>) | null;
};

/** An answer that equal rows share. */
type Known = { readonly row: Row; readonly answer: Promise<RowAnswer> };

/** A run over the rows, which begins when `run` is called. `end` ends it: rows in flight get no line, and the first reason is kept. */
export type Run = { readonly run: () => Promise<BatchSummary>; readonly end: (reason: unknown) => void };

export function createRun(input: RunInput): Run {
  const { options } = input;
  const windowSize = options.window ?? WINDOW[options.order];
  const concurrency = options.concurrency ?? input.concurrency;
  const totals = new Totals(options.onProgress);
  const answers = new Map<string, Known>(); // by hash of the request, oldest first
  const ids = new Set<string>();
  const stop = new AbortController();
  setMaxListeners(0, stop.signal); // every row listens to it
  let lines!: Lines;
  let waitingForEqual = 0;
  let wake: (() => void) | null = null;

  /** Ends the run. Rows in flight get no line, and the first reason is kept. */
  function end(reason: unknown): void {
    stop.abort(reason);
    wake?.();
  }

  async function run(): Promise<BatchSummary> {
    const { signal, onProgress } = options;
    using _stopping = onAbort(signal, () => end(abortedBy(signal)));
    try {
      await runOver(await openSource(input.source, options.toRequest !== null));
      return totals.summary();
    } catch (error) {
      throw stop.signal.aborted ? stop.signal.reason : fromNative(error);
    } finally {
      if (onProgress) totals.tell();
    }
  }

  async function runOver(source: RowSource): Promise<void> {
    const files = filesOf(options);
    const journal = files ? await openJournal(files, factsOf(input, source), options.resume) : null;
    totals.totalBytes = source.bytes;
    if (journal) {
      [totals.completed, totals.failed] = journal.done.counts;
      totals.cut = journal.done.cut;
    }
    totals.resumed = totals.completed + totals.failed;
    lines = new Lines({
      journal,
      deliver: input.deliver,
      inOrder: options.order === 'input',
      onWritten: () => wake?.(),
      onFailure: (error) => end(fromNative(error)),
    });
    try {
      if (journal && files && input.deliver && options.results === 'all')
        for await (const rows of writtenRows(files, journal.done.ends))
          await input.deliver(await Promise.all(rows.map(readAgain)));
      await answerAll(inWindows(rowsOf(source, journal), windowSize));
    } catch (error) {
      end(error);
    } finally {
      while (totals.running > 0) await change();
      await lines.settled();
      await source.items.return?.();
      await journal?.close();
    }
    stop.signal.throwIfAborted();
  }

  /** Reads the value of a row that an earlier run wrote, if the rows of this batch have one. */
  async function readAgain(row: BatchRow): Promise<BatchRow> {
    const read = readerOfRequest(options);
    if (read === null) return row;
    const { body } = row.response ?? {};
    if (row.response?.status_code !== OK || !body || !('choices' in body)) return withParsed(row, null);
    const answer = await readAnswer({ ...(body as ChatCompletion) }, read).catch(() => null);
    return withParsed(row, (answer as { parsed?: unknown } | null)?.parsed ?? null);
  }

  /** Yields the rows that have no line yet, as many at once as were read. */
  async function* rowsOf(
    { items }: RowSource,
    journal: Journal | null,
  ): AsyncGenerator<readonly (Row | FaultyRow)[]> {
    let last = 0;
    const done = journal?.done.hashes;
    for (let part = await items.next(); !part.done; part = await items.next()) {
      const rows: (Row | FaultyRow)[] = [];
      for (const item of part.value) {
        const row = await toRow(item, options);
        const isNew = row.customId === null || !ids.has(row.customId);
        if (row.customId !== null) ids.add(row.customId);
        last = row.line;
        const hash = done?.get(row.line);
        if (hash !== undefined) {
          if (hash !== row.hash) throw changed(`line ${row.line} is another one`);
          totals.skip(row.bytes);
          continue;
        }
        lines.expect(row.line);
        rows.push(isNew || 'error' in row ? row : { ...row, error: repeated(row.customId!) });
      }
      yield rows;
    }
    const behind = [...(done?.keys() ?? [])].find((line) => line > last);
    if (behind !== undefined) throw changed(`it had a line ${behind}`);
  }

  async function answerAll(rows: AsyncIterable<Row | FaultyRow>): Promise<void> {
    for await (const row of rows) {
      while (isFull() && !stop.signal.aborted) await change();
      stop.signal.throwIfAborted();
      if ('error' in row) fail(row, faultyRow(row, row.error), row.error);
      else void answerRow(row);
    }
    while (totals.running + waitingForEqual > 0) await change();
  }

  function isFull(): boolean {
    const isBusy = totals.running >= concurrency;
    return isBusy || waitingForEqual >= windowSize || lines.isFull;
  }

  /** Resolves when a row or the run ends. */
  async function change(): Promise<void> {
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
    wake = null;
  }

  /** Never rejects. */
  async function answerRow(row: Row): Promise<void> {
    const known = row.sameAs === null ? undefined : answers.get(row.sameAs);
    try {
      if (known && (await share(known, row))) return;
      const answer = await compute(row);
      finish(row, answer, tokensOf(answer.body));
    } catch (thrown) {
      const error = fromNative(thrown);
      if (stop.signal.aborted) return;
      if (OF_ALL_ROWS.has(error.code)) end(error);
      else fail(row, failedRow(row, error), error);
    } finally {
      wake?.();
    }
  }

  /** Gives a row the answer of an equal row. Returns false if that row failed. */
  async function share({ row: from, answer }: Known, row: Row): Promise<boolean> {
    waitingForEqual += 1;
    const known = await answer.catch(() => null);
    waitingForEqual -= 1;
    if (!known || stop.signal.aborted) return false;
    totals.shared += 1;
    finish(row, { ...known, body: sharedBody(known.body, from, row) }, null);
    return true;
  }

  async function compute(row: Row): Promise<RowAnswer> {
    totals.running += 1;
    const answer = ask(row);
    const { sameAs } = row;
    if (sameAs !== null) {
      answers.set(sameAs, { row, answer });
      for (const oldest of answers.keys()) {
        if (answers.size <= MOST_ANSWERS) break;
        answers.delete(oldest);
      }
    }
    try {
      return await answer;
    } catch (error) {
      if (sameAs !== null) answers.delete(sameAs);
      throw error;
    } finally {
      totals.running -= 1;
    }
  }

  /** Asks until there is an answer or a permanent error. */
  async function ask(row: Row): Promise<RowAnswer> {
    const { retries, timeoutMs, background } = options;
    const call = { traceId: requestIdOf(row), background };
    for (let tries = 0; ; ) {
      stop.signal.throwIfAborted();
      using limited = limitedSignal(stop.signal, timeoutMs);
      try {
        const ignored: string[] = [];
        const onIgnored = (path: string): void => void ignored.push(path);
        const body = await input.answer(row.url, row.body, { ...call, signal: limited.signal!, onIgnored });
        return toRowAnswer(body, ignored.slice(0, MOST_IGNORED));
      } catch (thrown) {
        const error = fromNative(thrown);
        const reason: unknown = limited.signal?.reason;
        if (reason instanceof OnpolicyError && reason.code === 'TIMEOUT') throw reason;
        if (error.code === 'OVERLOADED') await pause(error.retryAfterMs ?? BUSY_PAUSE_MS);
        else if (PASSING.has(error.code) && tries < retries) {
          await pause(error.retryAfterMs ?? FIRST_PAUSE_MS * 2 ** tries);
          tries += 1;
        } else throw error;
      }
    }
  }

  async function pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: stop.signal }).catch(() => {}); // the next attempt reports the abort
  }

  function finish(row: Row, answer: RowAnswer, tokens: Tokens | null): void {
    const cut = isCut(answer.body);
    if (cut) totals.addCut(row.customId);
    totals.end(row.bytes, false, tokens);
    lines.add({ place: row, kind: 0, row: answeredRow(row, answer), isCut: cut });
  }

  function fail(place: Row | FaultyRow, row: BatchRow, error: OnpolicyError): void {
    totals.end(place.bytes, true, null);
    lines.add({ place, kind: 1, row: readerOfRequest(options) ? withParsed(row, null) : row, isCut: false });
    const { maxFailures } = options;
    if (maxFailures === null || totals.failed <= maxFailures) return;
    const msg = `${totals.failed} rows have failed, and ${maxFailures} may; the last one is line ${place.line}: ${error.message}`;
    end(new OnpolicyError(error.code, msg, { cause: error }));
  }

  return { run, end };
}

/** Returns the paths of the files of a run, or null if it writes no files. */
function filesOf({ output, errors, resume }: Complete['BatchOptions']): RunFiles | null {
  if (output === null) {
    throwFaults([
      ...(errors === null ? [] : [fault(['errors'], 'conflict', 'an output beside it', errors)]),
      ...(resume ? [fault(['resume'], 'conflict', 'an output, which says where to continue', resume)] : []),
    ]);
    return null;
  }
  const { dir, name, ext } = path.parse(output);
  const files = { output, errors: errors ?? path.join(dir, `${name}.errors${ext}`) };
  if (path.resolve(files.errors) === path.resolve(output))
    throwFaults([fault(['errors'], 'conflict', 'another file than the output', errors)]);
  return files;
}

/** Returns the facts that must be the same when a run is resumed. */
function factsOf({ options, defaultModel }: RunInput, { bytes }: RowSource): RunFacts {
  const { model, seed, url, order, response_format: format } = options;
  const formed = format === null ? {} : { response_format: hashOf(JSON.stringify(format)) };
  return { 'length of the input': bytes, model: model ?? defaultModel, seed, url, order, ...formed };
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
