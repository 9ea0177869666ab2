/** A seed and a place -> a number that looks random and is the same in every run. */
import { createHash } from 'node:crypto';

/** An integer from 0 to 2^31 - 1. */
export function seedOf(seed: number | string, ...place: readonly (number | string)[]): number {
  const digest = createHash('sha256')
    .update(JSON.stringify([seed, ...place]))
    .digest();
  return digest.readUInt32LE(0) >>> 1;
}

/** The numbers below `count` in a random order. */
export function shuffled(count: number, seed: number | string, epoch: number): number[] {
  const keys = Array.from({ length: count }, (_, index) => seedOf(seed, epoch, index));
  return keys.map((_, index) => index).sort((a, b) => keys[a]! - keys[b]! || a - b);
}
