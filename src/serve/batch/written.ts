/** The files of a run -> the rows that earlier runs wrote, for a reader of all results. */
import { parseJson } from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';
import type { BatchRow } from '../../protocol/index.ts';
import type { RunFiles } from './journal.ts';
import { openSource } from './source.ts';

/**
 * Yields the rows of the output, then those of the errors, up to the lengths in bytes that the journal knows.
 * @throws OnpolicyError `CONFLICT` if a line is no row: somebody has changed the file
 */
export async function* writtenRows(
  { output, errors }: RunFiles,
  ends: readonly [output: number, errors: number],
): AsyncGenerator<readonly BatchRow[]> {
  for (const [kind, file] of [output, errors].entries()) {
    let left = ends[kind]!;
    if (left === 0) continue;
    const { items } = await openSource(file);
    try {
      for (let part = await items.next(); !part.done && left > 0; part = await items.next()) {
        const rows: BatchRow[] = [];
        for (const { value, bytes, line } of part.value) {
          if (left <= 0) break;
          left -= bytes;
          const row = parseJson(String(value), null) as BatchRow | null;
          if (!row)
            throw new OnpolicyError('CONFLICT', `output: line ${line} of ${file} is not the line of a row`, {
              param: 'output',
            });
          rows.push(row);
        }
        yield rows;
      }
    } finally {
      await items.return?.();
    }
  }
}
