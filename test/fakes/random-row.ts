/** Rows of logits that look like a language model's: many unlikely tokens, a few likely ones. Fixed by their seed. */
import { randomNumbers } from './random-numbers.ts';

/** A row of `size` logits: a normal bulk and `peaks` tokens above it. */
export function randomRow(size: number, seed: number, peaks = 30): Float32Array {
  const next = randomNumbers(seed);
  const row = new Float32Array(size);
  for (let id = 0; id < size; id++)
    row[id] = 2.5 * Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
  for (let peak = 0; peak < peaks; peak++) row[Math.floor(next() * size)]! += 8 + 0.3 * peak;
  return row;
}

/** A bitmask over `size` tokens in which each is allowed with probability `share`. */
export function randomMask(size: number, seed: number, share: number): Uint32Array {
  const next = randomNumbers(seed);
  const mask = new Uint32Array(Math.ceil(size / 32));
  for (let id = 0; id < size; id++) if (next() < share) mask[id >> 5]! |= 1 << (id & 31);
  return mask;
}

/** A bitmask over `size` tokens that allows exactly `ids`. */
export function maskOf(size: number, ids: Iterable<number>): Uint32Array {
  const mask = new Uint32Array(Math.ceil(size / 32));
  for (const id of ids) mask[id >> 5]! |= 1 << (id & 31);
  return mask;
}
