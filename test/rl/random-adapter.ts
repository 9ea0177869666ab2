/** A trainer and random numbers -> weights for its adapter that change what the model answers. */
import type { AdapterWeights } from '../../src/engine/native/index.ts';
import type { Trainer } from '../../src/rl/trainer.ts';

/** The first factors as they are, the second ones, which begin as zeros, of `spread` times `random()`. */
export function randomAdapter(trainer: Trainer, random: () => number, spread = 0.05): AdapterWeights {
  const entries = Object.entries(trainer.adapter());
  return Object.fromEntries(
    entries.map(([name, { a, b }]) => [name, { a, b: b.map(() => spread * random()) }]),
  );
}
