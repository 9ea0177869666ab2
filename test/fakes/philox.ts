/** (seed, position) -> a number in [0, 1): Philox4x32-10, written for clarity. */

const MASK = 0xffffffffn;

/** The four output words of one counter under one key. */
export function philox4x32(counter: readonly bigint[], key: readonly bigint[]): bigint[] {
  let [c0, c1, c2, c3] = counter as [bigint, bigint, bigint, bigint];
  let [k0, k1] = key as [bigint, bigint];
  for (let round = 0; round < 10; round++) {
    const first = 0xd2511f53n * c0;
    const second = 0xcd9e8d57n * c2;
    [c0, c1, c2, c3] = [(second >> 32n) ^ c1 ^ k0, second & MASK, (first >> 32n) ^ c3 ^ k1, first & MASK];
    k0 = (k0 + 0x9e3779b9n) & MASK;
    k1 = (k1 + 0xbb67ae85n) & MASK;
  }
  return [c0, c1, c2, c3];
}

/** The random number of the `position`-th generated token. Streams of one seed are independent. */
export function uniformAt(seed: bigint, position: number, stream = 0): number {
  const bits = BigInt.asUintN(64, seed);
  const place = BigInt(position);
  const [a, b] = philox4x32([place & MASK, place >> 32n, BigInt(stream), 0n], [bits & MASK, bits >> 32n]);
  return Number((a! << 21n) ^ (b! >> 11n)) * 2 ** -53;
}
