// A seed -> random numbers, choices and shuffled lists: the same on every machine.

/** Draws from one stream of random numbers. */
export function createRandom(seed) {
  let state = seed >>> 0;
  /** In [0, 1). */
  const uniform = () => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
  /** A whole number from `low` to `high`, both included. */
  const integer = (low, high) => low + Math.floor(uniform() * (high - low + 1));
  const pick = (list) => list[integer(0, list.length - 1)];
  /** `count` different entries of a list. */
  const sample = (list, count) => {
    const rest = [...list];
    return Array.from({ length: count }, () => rest.splice(integer(0, rest.length - 1), 1)[0]);
  };
  /** From a normal distribution around 0 with deviation 1. */
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  return { uniform, integer, pick, sample, normal };
}
