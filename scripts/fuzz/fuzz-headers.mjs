// Fuzzes the readers of GGUF headers, guided by coverage: node scripts/fuzz/fuzz-headers.mjs [--seconds N] [--only model|projector] [--input FILE]
//   model:     any bytes -> a header with the checks of a text model, or an OnpolicyError
//   projector: the same with the checks of a projector
// Begins with the models of the tests. Bytes and parts are changed; what runs new code is kept in native/build/fuzz/header-NAME/corpus and changed
// further. Fails for an error that is no OnpolicyError, and for an input that takes a second of processor time; it is written beside the corpus.
import crypto from 'node:crypto';
import fs from 'node:fs';
import inspector from 'node:inspector';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { checkTextModel, parseHeader } from '../../dist/engine/gguf/index.js';
import { OnpolicyError } from '../../dist/errors.js';
import { checkProjector } from '../../dist/models/media/check-projector.js';
import { encode } from './files/gguf.mjs';
import { mutate } from './files/mutate.mjs';
import { randomFrom } from './files/random.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
/** Bytes of an input at most: headers without the data of tensors. */
const MAX_BYTES = 2 ** 16;
const MAX_MS = 1000;
const CHECKS = {
  model: (header) => checkTextModel([header]),
  projector: (header) => checkProjector(header),
};
/** Bytes that headers have in common: magic, counts and sizes, types. */
const WORDS = ['GGUF', 'general.architecture', 'tokenizer.ggml.tokens', 'clip.projector_type', 'split.count'];

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    only: { type: 'string' },
    input: { type: 'string' },
    seed: { type: 'string', default: '1' },
  },
});
const names = values.only ? [values.only] : Object.keys(CHECKS);
for (const name of names)
  if (!(name in CHECKS))
    throw new Error(`--only: expected one of ${Object.keys(CHECKS).join(', ')}, not ${name}`);
const session = new inspector.Session();
session.connect();
/** Code that an input has run, by place and by how often, in powers of two. */
const seen = new Set();

if (values.input) for (const name of names) await run(name, fs.readFileSync(values.input));
else {
  post('Profiler.enable');
  post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  for (const name of names) await fuzz(name);
}

async function fuzz(name) {
  const { bases } = await import(`./files/${name === 'model' ? 'text' : 'projector'}.mjs`);
  const folder = path.join(root, 'native', 'build', 'fuzz', `header-${name}`);
  const kept = path.join(folder, 'corpus');
  fs.mkdirSync(kept, { recursive: true });
  const random = randomFrom(Number(values.seed));
  const undamaged = bases().map(({ parts }) => parts);
  const corpus = [
    ...undamaged.map((parts) => encode(parts).subarray(0, MAX_BYTES)),
    ...fs.readdirSync(kept).map((file) => fs.readFileSync(path.join(kept, file))),
  ];
  for (const bytes of corpus) await run(name, bytes, folder);
  isNew();
  const end = performance.now() + 1000 * Number(values.seconds);
  const [begun, first] = [corpus.length, performance.now()];
  let count = 0;
  for (; performance.now() < end; count++) {
    // Every fourth input is a damaged file as a whole, the others are kept ones with changed bytes.
    const bytes =
      count % 4 === 0
        ? mutate(random.pick(undamaged), Math.floor(random.below(2 ** 31))).bytes.subarray(0, MAX_BYTES)
        : changed(corpus, random);
    await run(name, bytes, folder);
    if (!isNew()) continue;
    corpus.push(bytes);
    fs.writeFileSync(path.join(kept, hashOf(bytes)), bytes);
  }
  const rate = (1000 * count) / (performance.now() - first);
  console.log(
    `${name}: ${count} inputs, ${rate.toFixed(0)} a second, ${corpus.length - begun} of them run new code`,
  );
}

/** One of these with some bytes changed, cut, repeated, or taken from another. */
function changed(corpus, random) {
  let bytes = Buffer.from(random.pick(corpus));
  for (let times = 1 + random.below(6); times > 0; times--) {
    const at = random.below(bytes.length + 1);
    const size = random.below(random.pick([2, 9, 65, 1025]));
    const other = random.pick(corpus);
    const from = random.below(other.length + 1);
    const put = random.pick([
      () => Buffer.alloc(size, random.below(256)),
      () => other.subarray(from, from + size),
      () => Buffer.from(random.pick(WORDS)),
      () => number(random),
    ])();
    const removed = random.pick([0, put.length, put.length, size]);
    bytes = Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + removed)]);
  }
  return bytes.subarray(0, MAX_BYTES);
}

function number(random) {
  const bytes = Buffer.alloc(8);
  const near = 2n ** BigInt(random.below(65)) + BigInt(random.below(5)) - 2n;
  bytes.writeBigUInt64LE(BigInt.asUintN(64, near));
  return bytes.subarray(0, random.pick([1, 2, 4, 8]));
}

async function run(name, bytes, folder) {
  const begin = process.cpuUsage();
  try {
    const header = parseHeader('fuzzed.gguf', bytes, fileBytesOf(bytes));
    if (header !== null) await CHECKS[name](header);
  } catch (error) {
    if (!(error instanceof OnpolicyError)) fail(name, bytes, folder, error);
  }
  const { user, system } = process.cpuUsage(begin);
  const ms = (user + system) / 1000;
  if (ms > MAX_MS) fail(name, bytes, folder, new Error(`it took ${ms.toFixed(0)} ms`));
}

/** The size of the file: that of most headers with the data that they name, or that of the bytes alone. */
function fileBytesOf(bytes) {
  return bytes.length % 3 === 0 ? bytes.length : 2 ** 30;
}

function fail(name, bytes, folder, error) {
  console.log(error);
  if (folder) {
    const file = path.join(folder, `failed-${hashOf(bytes)}`);
    fs.writeFileSync(file, bytes);
    console.log(`node scripts/fuzz/fuzz-headers.mjs --only ${name} --input ${path.relative(root, file)}`);
  }
  process.exit(1);
}

/** True if the last input ran code that none before it did. */
function isNew() {
  let found = false;
  for (const { url, functions } of post('Profiler.takePreciseCoverage').result) {
    if (!url.includes('/dist/')) continue;
    for (const { ranges } of functions)
      for (const { startOffset, endOffset, count } of ranges) {
        if (count === 0) continue;
        const place = `${url}:${startOffset}:${endOffset}:${Math.ceil(Math.log2(count))}`;
        found ||= !seen.has(place);
        seen.add(place);
      }
  }
  return found;
}

/** The inspector answers before it returns. */
function post(method, parameters) {
  let answer;
  session.post(method, parameters, (error, result) => {
    if (error) throw new Error(error.message);
    answer = result;
  });
  return answer;
}

function hashOf(bytes) {
  return crypto.createHash('sha1').update(bytes).digest('hex');
}
