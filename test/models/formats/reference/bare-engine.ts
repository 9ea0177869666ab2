/** Runs the bare C++ engine in another process, as the reference. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const include = path.resolve(here, '../../../../native/include');

/** Why the bare engine cannot be built here, or null. */
export function whyNoBareEngine(): string | null {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return 'the reference program is built on linux-x64 only';
  try {
    execFileSync('g++', ['--version'], { stdio: 'ignore' });
  } catch {
    return 'there is no g++ to build the reference program with';
  }
  return fs.existsSync(include) ? null : 'the engine headers are not extracted: run npm run build:native';
}

/** `f32`: with a KV cache of 32 bits. */
export type BareOptions = { readonly f32: boolean };

/** The argmax continuation of each prompt. */
export function greedyTokens(
  model: string,
  prompts: readonly (readonly number[])[],
  count: number,
  { f32 }: BareOptions,
): number[][] {
  return run(model, prompts, [String(count), 'tokens', ...(f32 ? ['f32'] : [])]).map((line) =>
    line.trim().split(' ').map(Number),
  );
}

/** The logits after each prompt. */
export function lastLogits(
  model: string,
  prompts: readonly (readonly number[])[],
  { f32 }: BareOptions,
): Float32Array[] {
  return run(model, prompts, ['1', 'logits', ...(f32 ? ['f32'] : [])]).map((line) =>
    Float32Array.from(line.trim().split(' '), parseHexFloat),
  );
}

/** The logits after every token of a prompt, from one pass. */
export function promptLogits(
  model: string,
  prompt: readonly number[],
  precision: 'f32' | 'fused',
): Float32Array[] {
  const lines = run(model, [prompt], ['0', 'rows', ...(precision === 'fused' ? [] : [precision])]);
  return lines.map((line) => Float32Array.from(line.trim().split(' '), parseHexFloat));
}

/** A draft token, and how far its logit is above the next best. */
export type BareDraft = { readonly id: number; readonly margin: number };

/**
 * Returns the drafts of an assistant of Gemma 4 behind tokens, the last of which was sampled, with a KV cache of 32 bits. `lines`: how many of
 * them are computed at once, the others one by one, and the tokens.
 */
export function assistantDrafts(
  model: string,
  assistant: string,
  lines: readonly (readonly number[])[],
  count: number,
): BareDraft[][] {
  return linesOf('assistant', [model, assistant, String(count)], lines).map((line) => {
    const numbers = line.trim().split(' ').map(Number);
    return Array.from({ length: count }, (_, i) => ({ id: numbers[2 * i]!, margin: numbers[2 * i + 1]! }));
  });
}

/** Writes the model again with its matrices in another type. */
export function quantize(model: string, out: string, type: 'q8_0' | 'f32' = 'q8_0'): void {
  const { program, libraries } = build('quantize');
  execFileSync(program, [libraries, model, out, type]);
}

function run(model: string, prompts: readonly (readonly number[])[], args: string[]): string[] {
  return linesOf('greedy', [model, ...args], prompts);
}

function linesOf(name: Name, args: string[], prompts: readonly (readonly number[])[]): string[] {
  const input = `${prompts.map((prompt) => prompt.join(' ')).join('\n')}\n`;
  const { program, libraries } = build(name);
  const output = execFileSync(program, [libraries, ...args], {
    input,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  });
  return output.trimEnd().split('\n');
}

type Name = 'greedy' | 'quantize' | 'assistant';
type Built = { readonly program: string; readonly libraries: string };

const built = new Map<string, Built>();

function build(name: Name): Built {
  const known = built.get(name);
  if (known) return known;
  const from = createRequire(createRequire(import.meta.url).resolve('node-llama-cpp'));
  const libraries = path.resolve(
    path.dirname(from.resolve('@node-llama-cpp/linux-x64')),
    '../bins/linux-x64',
  );
  const library = (stem: string): string =>
    path.join(
      libraries,
      fs.readdirSync(libraries).find((file) => file.startsWith(`lib${stem}.`) && file.endsWith('.so'))!,
    );
  const program = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-reference-')), name);
  const sources = [path.join(here, `${name}.cc`), library('llama'), library('ggml'), library('ggml-base')];
  execFileSync('g++', [
    '-std=c++20',
    '-O1',
    `-I${include}`,
    '-o',
    program,
    ...sources,
    `-Wl,-rpath,${libraries}`,
  ]);
  built.set(name, { program, libraries });
  return { program, libraries };
}

function parseHexFloat(text: string): number {
  const [, sign, whole, fraction = '', exponent] = /^(-?)0x(\d)\.?([0-9a-f]*)p([+-]?\d+)$/.exec(text) ?? [];
  if (whole === undefined) return Number(text); // inf, nan
  const mantissa = Number.parseInt(whole + fraction, 16) / 16 ** fraction.length;
  return (sign === '-' ? -1 : 1) * mantissa * 2 ** Number(exponent);
}
