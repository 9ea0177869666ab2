/** Metric records -> lines of CSV: a row per record, a column per metric. */
import type { MetricRecord } from './run-log.ts';

/** Lines of CSV, the header first. Reads `records` twice, so that a long history is not in memory at once. */
export async function* metricsCsv(records: () => AsyncIterable<MetricRecord>): AsyncGenerator<string> {
  const names = new Set<string>();
  for await (const { metrics } of records()) for (const name of Object.keys(metrics)) names.add(name);
  const columns = [...names].sort();
  yield toLine(['step', 'created', 'source', ...columns]);
  for await (const { step, created, source, metrics } of records())
    yield toLine([step, created, source, ...columns.map((name) => metrics[name] ?? '')]);
}

function toLine(cells: readonly (string | number)[]): string {
  return `${cells.map((cell) => quote(String(cell))).join(',')}\r\n`;
}

function quote(cell: string): string {
  return /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
