/** The calls of a chunk's delta -> those that go on with the open call, which came before the delta's text, and those that begin after it. */
import type { ToolCallDelta } from '../protocol/index.ts';

/** `open` is the index of the open call, or anything else where none is open. */
export function splitCalls(
  calls: readonly ToolCallDelta[],
  open: number | string | null,
): readonly [readonly ToolCallDelta[], readonly ToolCallDelta[]] {
  const first = calls.findIndex(({ index }) => index !== open);
  const end = first < 0 ? calls.length : first;
  return [calls.slice(0, end), calls.slice(end)];
}
