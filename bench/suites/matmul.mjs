// Types, shapes and numbers of tokens -> GFLOP/s of our packed matmuls and of ggml's own, in turns in one process, beside the processor's
// 8-bit peak and the memory's speed, measured between them.
import { execFileSync } from 'node:child_process';
import os from 'node:os';
import { buildBare, kernelParts } from '../bare/build.mjs';
import { median, result, waitUntilQuiet } from '../lib/measure.mjs';

const TYPES = ['q8_0', 'q4_K', 'q6_K', 'q4_0', 'mxfp4', 'f16', 'bf16', 'f32'];
const SHAPES = ['1024x3072', '3072x1024', '4096x4096'];
const TOKENS = [1, 8, 32, 512];
const TURN_SECONDS = 0.15;
const GIGA = 1e9;

function rowsOf({ type, width, rows, tokens, turns }) {
  const label = `${type}, ${width} x ${rows}, ${tokens} ${tokens === 1 ? 'token' : 'tokens'}`;
  const of = (key) => turns.map((turn) => turn[key] / GIGA);
  const ratio = (above, below) => median(turns.map((turn) => turn[above] / turn[below]));
  const ratios = { ggml: ratio('ours', 'ggml') };
  if (tokens === 1) ratios['what threads read'] = ratio('oursBytes', 'memory');
  else ratios['8-bit peak'] = ratio('ours', 'peak');
  return [
    result(`${label}: onpolicy`, 'GFLOP/s', of('ours'), ratios),
    result(`${label}: ggml`, 'GFLOP/s', of('ggml')),
  ];
}

/** `only` names types, or the kernels avx2 or avx512; without the latter the processor's best. */
export async function run({
  rounds = 3,
  threads = os.availableParallelism(),
  only = [],
  log = () => {},
} = {}) {
  const kernels = only.find((name) => name.startsWith('avx')) ?? '';
  const types = TYPES.filter((type) => only.includes(type));
  const { program, libraries } = await buildBare({ name: 'matmul', parts: kernelParts() });
  await waitUntilQuiet({ log });
  const settings = {
    libraries,
    threads,
    rounds,
    kernels,
    seconds: TURN_SECONDS,
    types: types.length > 0 ? types : TYPES,
    shapes: SHAPES,
    tokens: TOKENS,
  };
  const words = Object.entries(settings).map(([key, value]) => `${key}=${value}`);
  const output = execFileSync(program, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const matmuls = output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const turns = matmuls.flatMap((matmul) => matmul.turns);
  log(`matmuls: ${matmuls[0].kernels} kernels`);
  return [
    ...matmuls.flatMap(rowsOf),
    result(
      '8-bit peak of the processor',
      'GFLOP/s',
      turns.map(({ peak }) => peak / GIGA),
    ),
    result(
      'what threads read from memory',
      'GB/s',
      turns.map(({ memory }) => memory / GIGA),
    ),
  ];
}
