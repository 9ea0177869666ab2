/** The rows of a step that JavaScript edits -> sampled rows. The same for every backend. */
import type { HookedRows } from '../native/index.ts';
import type { RowEdit, StepResult } from './backend.ts';

/** Runs every edit, then samples the rows of those that succeeded. */
export async function finishEdits(
  rows: HookedRows,
  rowEdits: readonly RowEdit[],
  result: StepResult,
): Promise<StepResult> {
  if (rowEdits.length === 0) return result;
  const edited: number[] = [];
  for (const [index, edit] of rowEdits.entries()) {
    rows.readRow(index, edit.row());
    if (!edit.edit()) continue;
    rows.writeRow(index, edit.row());
    edited.push(index);
  }
  return { ...result, samples: await rows.finish(Int32Array.from(edited)) };
}

/** The option of a step that names its hooked samples. */
export function hookedSamples(rowEdits: readonly RowEdit[]): { hooked?: Int32Array } {
  return rowEdits.length === 0 ? {} : { hooked: Int32Array.from(rowEdits, ({ sample }) => sample) };
}
