/** A seed and a position -> a number that looks random and is the same in every run. */
import { hash } from 'node:crypto';

/** Returns an integer from 0 to 2^31 - 1. */
export function seedOf(seed: number | string, ...place: readonly (number | string)[]): number {
  return hash('sha256', JSON.stringify([seed, ...place]), 'buffer').readUInt32LE(0) >>> 1;
}

/** Returns the numbers below `count` in a random order. */
export function shuffled(count: number, seed: number | string, epoch: number): number[] {
  const keys = Array.from({ length: count }, (_, index) => seedOf(seed, epoch, index));
  return keys.map((_, index) => index).sort((a, b) => keys[a]! - keys[b]! || a - b);
}
