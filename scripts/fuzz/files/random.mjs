// A seed -> random numbers and choices, the same on every machine.
export function randomFrom(seed) {
  let state = (seed ^ 0x9e3779b9) >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  for (let i = 0; i < 4; i++) next();
  const below = (count) => next() % count;
  return {
    below,
    chance: (share) => next() / 2 ** 32 < share,
    pick: (list) => list[below(list.length)],
    bytes: (count) => Buffer.from(Array.from({ length: count }, () => below(256))),
    normal: () =>
      Math.sqrt(-2 * Math.log((next() + 0.5) / 2 ** 32)) * Math.cos((2 * Math.PI * next()) / 2 ** 32),
  };
}
