/** Values -> lines on a command's streams, which are the process's own or those of a test. */
import type { Readable, Writable } from 'node:stream';

/** Streams of a command. */
export type Terminal = {
  readonly input: Readable;
  readonly output: Writable;
  readonly errors: Writable;
};

/** Writes a line of text. */
export function print(terminal: Terminal, text: string): void {
  terminal.output.write(`${text}\n`);
}

/** Writes a value as JSON. */
export function printJson(terminal: Terminal, value: unknown): void {
  print(terminal, JSON.stringify(value, null, 2));
}

/** Writes rows in aligned columns. */
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

/** The whole input. */
export async function readAll(input: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of input) chunks.push(Buffer.from(chunk as Uint8Array));
  return Buffer.concat(chunks).toString('utf8');
}
