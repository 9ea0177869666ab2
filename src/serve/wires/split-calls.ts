/**
 * The calls of a chunk's delta -> calls that continue the open one, which precedes the delta's text, and calls that begin after that text.
 */
import type { ToolCallDelta } from '../../protocol/index.ts';

/** Splits the calls. `open` is the index of the open call, or any other value if no call is open. */
export function splitCalls(
  calls: readonly ToolCallDelta[],
  open: number | string | null,
): readonly [readonly ToolCallDelta[], readonly ToolCallDelta[]] {
  const first = calls.findIndex(({ index }) => index !== open);
  const end = first < 0 ? calls.length : first;
  return [calls.slice(0, end), calls.slice(end)];
}
