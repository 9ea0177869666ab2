/** Values -> lines on a command's streams, which are those of the process or of a test. */
import type { Readable, Writable } from 'node:stream';
import type { WriteStream } from 'node:tty';
import { onAbort, pending } from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';

export type Terminal = {
  readonly input: Readable;
  readonly output: Writable;
  readonly errors: Writable;
};

/** Returns true if a stream is a terminal. */
export function isWatched(stream: Writable): boolean {
  return (stream as Partial<WriteStream>).isTTY === true;
}

export function print(terminal: Terminal, text: string): void {
  terminal.output.write(`${text}\n`);
}

export function printJson(terminal: Terminal, value: unknown): void {
  print(terminal, JSON.stringify(value, null, 2));
}

export function printTable(terminal: Terminal, rows: readonly (readonly string[])[]): void {
  const widths: number[] = [];
  for (const row of rows)
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length);
  for (const row of rows)
    print(
      terminal,
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    );
}

/** Writes a result: as JSON, or as rows in aligned columns. */
export function printResult(
  terminal: Terminal,
  isJson: boolean,
  value: unknown,
  rows: readonly (readonly string[])[],
): void {
  if (isJson) printJson(terminal, value);
  else printTable(terminal, rows);
}

export async function readAll(input: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of input) chunks.push(Buffer.from(chunk as Uint8Array));
  return Buffer.concat(chunks).toString('utf8');
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Resolves when the process is interrupted, or `signal` fires. */
export async function interrupted(signal: AbortSignal | undefined): Promise<void> {
  const { promise, resolve } = pending<void>();
  const end = (): void => resolve();
  using _given = onAbort(signal, end);
  for (const name of SIGNALS) process.once(name, end);
  await promise;
  for (const name of SIGNALS) process.off(name, end);
}

/** Runs `work` with a signal that Ctrl+C or `signal` fires. `message` says how to continue afterwards. */
export async function untilInterrupted(
  work: (stop: AbortSignal) => Promise<void>,
  message: string,
  signal?: AbortSignal,
): Promise<void> {
  const stop = new AbortController();
  const interrupt = (): void => stop.abort();
  process.once('SIGINT', interrupt);
  using _given = onAbort(signal, interrupt);
  try {
    await work(stop.signal);
  } catch (cause) {
    if (!stop.signal.aborted) throw cause;
    throw new OnpolicyError('ABORTED', message, { cause });
  } finally {
    process.off('SIGINT', interrupt);
  }
}
