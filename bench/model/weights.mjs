// A tensor's type, size and deviation -> its bytes, random and the same for the same name, in chunks.

const CHUNK_BLOCKS = 1 << 18;
const TABLE_SIZE = 4096;
/** Standard deviation of a uniform signed byte. */
const BYTE_DEVIATION = Math.sqrt((256 ** 2 - 1) / 12);

/** A generator of 32-bit numbers: xorshift with four words of state, seeded by a string. */
function random32(seed) {
  let x = 0x811c9dc5;
  for (let i = 0; i < seed.length; i++) x = Math.imul(x ^ seed.charCodeAt(i), 0x01000193);
  let y = x ^ 0x9e3779b9;
  let z = x ^ 0x243f6a88;
  let w = x ^ 0xb7e15162;
  return () => {
    const t = x ^ (x << 11);
    x = y;
    y = z;
    z = w;
    w = w ^ (w >>> 19) ^ t ^ (t >>> 8);
    return w;
  };
}

/** The bits of `value` as a half-precision number, for values that are normal there. */
function halfBits(value) {
  const [bits] = new Uint32Array(Float32Array.of(value).buffer);
  if (value === 0) return 0;
  const exponent = ((bits >>> 23) & 0xff) - 127 + 15;
  if (exponent < 1 || exponent > 30) throw new RangeError(`${value} is no normal half-precision number`);
  return ((bits >>> 16) & 0x8000) | (((exponent << 10) | ((bits >>> 13) & 0x3ff)) + ((bits >>> 12) & 1));
}

/** Q8_0: per block of 32 a half-precision scale and 32 signed bytes, here the generator's own. */
function* quantizedChunks(blockCount, deviation, next) {
  const scale = halfBits(deviation / BYTE_DEVIATION);
  for (let done = 0; done < blockCount; done += CHUNK_BLOCKS) {
    const blocks = Math.min(CHUNK_BLOCKS, blockCount - done);
    const halves = new Uint16Array(blocks * 17); // (blocks, scale and 16 pairs of bytes)
    for (let at = 0; at < halves.length; ) {
      halves[at++] = scale;
      for (let pair = 0; pair < 8; pair++) {
        const bits = next();
        halves[at++] = bits;
        halves[at++] = bits >>> 16;
      }
    }
    yield Buffer.from(halves.buffer);
  }
}

/** Chunks of Q8_0 rows: `fill` writes the numbers of row `index` into an array of zeros. */
export function* quantizedRows({ dims: [columns, rows] }, fill) {
  const row = new Float32Array(columns);
  const rowHalves = (columns / 32) * 17;
  for (let index = 0; index < rows; ) {
    const count = Math.min(Math.ceil((32 * CHUNK_BLOCKS) / columns), rows - index);
    const halves = new Uint16Array(count * rowHalves);
    for (let i = 0; i < count; i++, index++) {
      row.fill(0);
      fill(row, index);
      for (let block = 0; block < columns / 32; block++)
        quantizeBlock(row.subarray(32 * block, 32 * block + 32), halves, i * rowHalves + 17 * block);
    }
    yield Buffer.from(halves.buffer);
  }
}

function quantizeBlock(values, halves, at) {
  const scale = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) / 127;
  if (scale < 2 ** -14) return; // zeros
  halves[at] = halfBits(scale);
  const byte = (i) => Math.max(-127, Math.min(127, Math.round(values[i] / scale))) & 0xff;
  for (let pair = 0; pair < 16; pair++) halves[at + 1 + pair] = byte(2 * pair) | (byte(2 * pair + 1) << 8);
}

/** F32 and F16: values drawn from a table of evenly spread ones. */
function* tableChunks(elementCount, deviation, next, isHalf) {
  const limit = Math.sqrt(3) * deviation;
  const values = Float32Array.from({ length: TABLE_SIZE }, (_, i) => ((2 * i + 1) / TABLE_SIZE - 1) * limit);
  const table = isHalf ? Uint16Array.from(values, (value) => halfBitsOrZero(value)) : values;
  for (let done = 0; done < elementCount; done += CHUNK_BLOCKS) {
    const size = Math.min(CHUNK_BLOCKS, elementCount - done);
    const chunk = isHalf ? new Uint16Array(size) : new Float32Array(size);
    drawFrom(table, chunk, next);
    yield Buffer.from(chunk.buffer);
  }
}

function drawFrom(table, chunk, next) {
  for (let i = 0; i < chunk.length; i++) chunk[i] = table[next() & (TABLE_SIZE - 1)];
}

const halfBitsOrZero = (value) => (Math.abs(value) < 2 ** -14 ? 0 : halfBits(value));

/** Chunks of a tensor's random bytes. */
export function randomChunks({ name, type, dims, deviation }) {
  const elementCount = dims.reduce((product, dim) => product * dim, 1);
  const next = random32(name);
  if (type === 'q8_0') return quantizedChunks(elementCount / 32, deviation, next);
  return tableChunks(elementCount, deviation, next, type === 'f16');
}

/** Chunks of signed bytes, one for each element. */
export function* randomBytes({ name, dims }) {
  const elementCount = dims.reduce((product, dim) => product * dim, 1);
  const next = random32(name);
  for (let done = 0; done < elementCount; done += CHUNK_BLOCKS) {
    const words = Int32Array.from({ length: Math.min(CHUNK_BLOCKS, elementCount - done) / 4 }, next);
    yield Buffer.from(words.buffer);
  }
}

/** Chunks of a norm's weights: all one. */
export function* oneChunks({ dims }) {
  yield Buffer.from(new Float32Array(dims[0]).fill(1).buffer);
}

/** The same chunks with the rows of some token ids zero but for their first `keptBytes`. */
export function* withFaintRows(chunks, { rowBytes, keptBytes }, rows) {
  const sorted = [...rows].sort((a, b) => a - b);
  let start = 0;
  for (const chunk of chunks) {
    const end = start + chunk.length;
    for (const row of sorted) {
      const from = Math.max(row * rowBytes + keptBytes, start);
      const to = Math.min((row + 1) * rowBytes, end);
      if (from < to) chunk.fill(0, from - start, to - start);
    }
    start = end;
    yield chunk;
  }
}
