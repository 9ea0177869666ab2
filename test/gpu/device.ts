/** The environment -> whether a Vulkan device can be used here, and if not, why. */
import { openLibraries } from '../../src/engine/native/libraries.ts';

/** Null if there is a device; else the reason, for the names of skipped tests. */
export async function whyNoDevice(): Promise<string | null> {
  try {
    await openLibraries('vulkan');
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Returns the largest distance between two lists of the same length. */
export function largestDistance(left: ArrayLike<number>, right: ArrayLike<number>): number {
  if (left.length !== right.length) throw new Error(`expected ${right.length} numbers, got ${left.length}`);
  return Array.from(left, (value, i) => Math.abs(value - right[i]!)).reduce((a, b) => Math.max(a, b), 0);
}
