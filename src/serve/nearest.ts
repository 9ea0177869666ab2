/** Vectors of embeddings -> how similar they are, and which are nearest to a query. Exact: every vector is compared. */
import { fault, throwFaults } from '../protocol/index.ts';

/** A vector, such as `embedding` of `createEmbeddings`. */
export type Vector = readonly number[] | Float32Array | Float64Array;

/** A vector near a query. */
export type Neighbor = {
  /** Its place among the vectors. */
  readonly index: number;
  /** Cosine of the angle to the query, from -1 to 1; 0 if one of them is all zeros. */
  readonly score: number;
};

/**
 * Returns the cosine of the angle between two vectors, from -1 to 1; 0 if one of them is all zeros.
 * @throws OnpolicyError `INVALID_REQUEST` if their lengths differ or are 0, or a number is not finite
 */
export function similarity(a: Vector, b: Vector): number {
  const length = lengthOf(['a'], a);
  requireLength(['b'], b, length);
  return cosine(['a'], a, 0, b, norm(['b'], b, 0, length));
}

/**
 * Returns the `n` vectors that are most similar to a query, best first; equal scores in their order.
 * @param vectors a list, or the numbers of all vectors one after the other: (vectors × length of the query)
 * @throws OnpolicyError `INVALID_REQUEST` as {@link similarity} does, or if `n` is no integer from 0
 */
export function nearest(
  vectors: readonly Vector[] | Float32Array | Float64Array,
  query: Vector,
  n = 10,
): Neighbor[] {
  const width = lengthOf(['query'], query);
  if (!Number.isInteger(n) || n < 0) throwFaults([fault(['n'], 'range', 'an integer from 0', n)]);
  const queryNorm = norm(['query'], query, 0, width);
  const best: Neighbor[] = [];
  const offer = (index: number, score: number): void => {
    if (best.length === n && !(score > (best.at(-1)?.score ?? Number.POSITIVE_INFINITY))) return;
    let at = best.length;
    while (at > 0 && best[at - 1]!.score < score) at--;
    best.splice(at, 0, { index, score });
    if (best.length > n) best.pop();
  };
  if (!Array.isArray(vectors)) {
    const flat = vectors as Float32Array;
    if (!isVector(flat) || flat.length % width !== 0)
      throwFaults([fault(['vectors'], 'length', `vectors of ${width} numbers each`, flat?.length ?? flat)]);
    for (let i = 0; i < flat.length / width; i++)
      offer(i, cosine(['vectors', String(i)], flat, i * width, query, queryNorm));
    return best;
  }
  for (const [i, vector] of (vectors as readonly Vector[]).entries()) {
    requireLength(['vectors', String(i)], vector, width);
    offer(i, cosine(['vectors', String(i)], vector, 0, query, queryNorm));
  }
  return best;
}

/** Cosine of the angle between `b` and as many numbers of `a` from `start`. */
function cosine(loc: readonly string[], a: Vector, start: number, b: Vector, normOfB: number): number {
  const scale = norm(loc, a, start, b.length) * normOfB;
  if (scale === 0) return 0;
  let dot = 0;
  for (let i = 0; i < b.length; i++) dot += a[start + i]! * b[i]!;
  return Math.max(-1, Math.min(1, dot / scale));
}

function norm(loc: readonly string[], vector: Vector, start: number, length: number): number {
  let sum = 0;
  for (let i = start; i < start + length; i++) sum += vector[i]! * vector[i]!;
  if (!Number.isFinite(sum)) throwFaults([fault(loc, 'value', 'finite numbers', vector)]);
  return Math.sqrt(sum);
}

function isVector(value: unknown): value is Vector {
  return Array.isArray(value) || value instanceof Float32Array || value instanceof Float64Array;
}

function lengthOf(loc: readonly string[], vector: Vector): number {
  if (!isVector(vector)) throwFaults([fault(loc, 'type', 'a list of numbers', vector)]);
  if (vector.length === 0) throwFaults([fault(loc, 'length', 'at least one number', vector)]);
  return vector.length;
}

function requireLength(loc: readonly string[], vector: Vector, length: number): void {
  if (lengthOf(loc, vector) !== length)
    throwFaults([fault(loc, 'length', `${length} numbers, as the other vector has`, vector.length)]);
}
