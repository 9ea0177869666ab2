// A tensor of a model's shape -> weights with which the model repeats its prompt: it finds where the last tokens stood before, and says
// what followed them there. All layers are computed; the first two copy, and the others add nothing.
//
// A state (width):  1  |  token  |  the token before  |  the one before that  | ...
// Layer 0, a head for each distance: fetches the token that stands so far before. Its query and key are constants; rotation by position
// makes their product largest at that distance.
// Layer 1: the query is the last tokens, the key the tokens before; where they agree, the value is the token that stood there. Only
// pairs of numbers that hardly rotate over a whole prompt are used.
import { quantizedRows } from './weights.mjs';

/** Tokens that must agree for a place to be copied from. */
const DISTANCES = 6;
/** Places in a state. */
const ONE = 0;
const TOKEN = { at: 32, size: 512 };
const BEFORE = { at: 544, size: 80 }; // for each distance
/** Numbers of a head that compare one token with one. */
const COMPARED = 12;
/** The first pair of a head that rotates by less than a quarter over 2,000 tokens, with the base of this model. */
const FIRST_SLOW_PAIR = 28;
/** Pairs that a distance is read from. */
const FAST_PAIRS = 11;
/** Sharpness with which the heads of both layers choose: the weight of their norms of queries and keys. */
const SHARPNESS = { 0: 6, 1: 3.2 };
/** Weight by which a copied token counts more than the last one. */
const COPIED = 6;

/** Deterministic numbers of a normal distribution with deviation 1. */
function normals(seed) {
  let state = seed;
  const uniform = () => {
    state = (Math.imul(state, 0x19660d) + 0x3c6ef35f) >>> 0;
    let bits = state ^ (state >>> 16);
    bits = Math.imul(bits, 0x45d9f3b) >>> 0;
    return ((bits ^ (bits >>> 15)) >>> 0) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

/** (rows, columns) normal numbers of this deviation. */
function randomMatrix(rows, columns, deviation, seed) {
  const next = normals(seed);
  return Array.from({ length: rows }, () => Float32Array.from({ length: columns }, () => deviation * next()));
}

/** The chunks of a tensor that copies, or null: it stays random. `silent`: tokens that are never said. */
export function copyingChunks(tensor, shape, silent) {
  const [, layer, part] = /^(?:blk\.(\d+)\.)?(.+)\.weight$/.exec(tensor.name);
  if (part === 'token_embd') return quantizedRows(tensor, tokenRows(shape, new Set(silent)));
  if (part === 'output_norm') return normOf(shape.width, (i) => (isToken(i) ? 1 : 0));
  if (part === 'ffn_down') return quantizedRows(tensor, zeroRows);
  if (layer === undefined) return null;
  if (part === 'attn_output' && layer > 1) return quantizedRows(tensor, zeroRows);
  if (layer > 1) return null;
  if (/attn_[qk]_norm/.test(part)) return normOf(shape.headSize, () => SHARPNESS[layer]);
  const rows = (layer === '0' ? fetchingRows(shape) : findingRows(shape))[part];
  return rows ? quantizedRows(tensor, rows) : null;
}

const zeroRows = () => {};
const isToken = (i) => i >= TOKEN.at && i < TOKEN.at + TOKEN.size;

function* normOf(size, weight) {
  yield Buffer.from(Float32Array.from({ length: size }, (_, i) => weight(i)).buffer);
}

/** Each token is a random direction. */
function tokenRows({ vocabSize }, silent) {
  const next = normals(1);
  return (row, token) => {
    if (token >= vocabSize) throw new RangeError(`token ${token}`);
    for (let i = 0; i < TOKEN.size; i++) row[TOKEN.at + i] = next() / Math.sqrt(TOKEN.size);
    row[ONE] = 1;
    if (silent.has(token)) row.fill(0);
  };
}

/** (BEFORE.size, TOKEN.size): a token as it is kept beside a later one. */
const KEPT = randomMatrix(BEFORE.size, TOKEN.size, 1 / Math.sqrt(BEFORE.size), 2);
/** (COMPARED, BEFORE.size) for each distance. */
const COMPARE = Array.from({ length: DISTANCES }, (_, i) =>
  randomMatrix(COMPARED, BEFORE.size, 1 / Math.sqrt(COMPARED), 3 + i),
);
/** (COMPARED, TOKEN.size): of a token itself what COMPARE[0] makes of the kept one. */
const COMPARE_TOKEN = COMPARE[0].map((row) =>
  Float32Array.from({ length: TOKEN.size }, (_, i) => row.reduce((sum, w, j) => sum + w * KEPT[j][i], 0)),
);

/** The size of a normed state's "1" in layer 0, where a state is a token and 1. */
const normScale = ({ width }, squares) => Math.sqrt(width / squares);

function fetchingRows(shape) {
  const { headSize, ropeBase, heads, kvHeads } = shape;
  const pairs = headSize / 2;
  const perGroup = heads / kvHeads;
  const angle = (pair) => ropeBase ** (-pair / pairs);
  const head = (output) => [Math.floor(output / headSize), output % headSize];
  return {
    attn_k: (row, output) => {
      const [, i] = head(output);
      if (i < FAST_PAIRS) row[ONE] = 1;
    },
    attn_q: (row, output) => {
      const [index, i] = head(output);
      const distance = Math.floor(index / perGroup) + 1;
      if (i % pairs >= FAST_PAIRS) return;
      const turn = -distance * angle(i % pairs);
      row[ONE] = i < pairs ? Math.cos(turn) : Math.sin(turn);
    },
    attn_v: (row, output) => {
      const [, i] = head(output);
      if (i < BEFORE.size) row.set(KEPT[i], TOKEN.at);
    },
    attn_output: (row, place) => {
      const distance = Math.floor((place - BEFORE.at) / BEFORE.size);
      if (place < BEFORE.at || distance >= DISTANCES) return;
      const from = distance * perGroup * headSize;
      row[from + ((place - BEFORE.at) % BEFORE.size)] = 1 / normScale(shape, 2);
    },
  };
}

function findingRows(shape) {
  const { headSize, heads, kvHeads } = shape;
  const pairs = headSize / 2;
  const perGroup = heads / kvHeads;
  const slow = pairs - FIRST_SLOW_PAIR;
  /** Returns the number of the comparison at place `i` of a head. Returns -1 if there is none. */
  const compared = (i) => {
    const pair = (i % pairs) - FIRST_SLOW_PAIR;
    const at = pair + (i < pairs ? 0 : slow);
    return pair >= 0 && at < DISTANCES * COMPARED ? at : -1;
  };
  const from = (distance) => BEFORE.at + (distance - 1) * BEFORE.size;
  return {
    attn_q: (row, output) => {
      const at = compared(output % headSize);
      if (at < 0) return;
      const distance = Math.floor(at / COMPARED);
      if (distance === 0) row.set(COMPARE_TOKEN[at % COMPARED], TOKEN.at);
      else row.set(COMPARE[distance][at % COMPARED], from(distance));
    },
    attn_k: (row, output) => {
      const at = compared(output % headSize);
      if (at < 0) return;
      const distance = Math.floor(at / COMPARED);
      row.set(COMPARE[distance][at % COMPARED], from(distance + 1));
    },
    attn_v: (row, output) => {
      if (output < TOKEN.size) row[TOKEN.at + output] = 1;
    },
    attn_output: (row, place) => {
      if (!isToken(place)) return;
      const i = place - TOKEN.at;
      const first = Math.floor(i / headSize) * perGroup * headSize + (i % headSize);
      row[first] = COPIED / normScale(shape, 2 + DISTANCES);
    },
  };
}
