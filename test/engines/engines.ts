/** Every engine on the same weights: the embedded model as a GGUF file, and as ONNX folders with different graphs. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import type { ChatCompletionRequest } from '../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime.ts';
import type { RuntimeOptions } from '../../src/runtime-options.ts';

const root = path.resolve(import.meta.dirname, '../..');

/** The embedded model. */
export const EMBEDDED = path.join(root, 'models/onpolicy-tiny.gguf');

/** Graphs of `npm run make:onnx`, by what is special about them. */
export const GRAPHS = {
  'ONNX, padded on the left': [],
  'ONNX, fused attention, weights beside the graph': ['--attention', 'grouped', '--last-rows', '--external'],
  'ONNX, no position_ids': ['--no-positions', '--last-rows'],
  'ONNX, 16-bit cache': ['--half'],
} as const;

/** Graphs with weights of four bits, and with the same values as floats. */
export const FOUR_BITS = {
  q4: ['--weights', 'q4', '--external'],
  'q4, fused attention': ['--weights', 'q4', '--attention', 'grouped', '--last-rows'],
  rounded: ['--weights', 'rounded'],
} as const;

/** Name of an engine: `GGUF` or a graph. */
export type EngineName = 'GGUF' | keyof typeof GRAPHS;

/** Why ONNX models cannot run here; null: they can. */
export function whyNoOnnx(): string | null {
  const { resolve } = createRequire(import.meta.url);
  for (const name of ['onnxruntime-node', '@huggingface/transformers', 'protobufjs'])
    try {
      resolve(name);
    } catch {
      return `${name} is not installed`;
    }
  return null;
}

const missing = whyNoOnnx();
if (missing !== null) process.stderr.write(`skipped: ONNX models: ${missing}\n`);

/** The engines that can run here. */
export const ENGINES: readonly EngineName[] =
  missing === null ? ['GGUF', ...(Object.keys(GRAPHS) as EngineName[])] : ['GGUF'];

let folder: string | null = null;
const open: Runtime[] = [];

/** A folder for this test file, removed by {@link closeAll}. */
export function temporaryFolder(): string {
  folder ??= fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-onnx-'));
  return folder;
}

/** The model of an engine: the ONNX folders are made on first use. */
export function modelOf(engine: EngineName): string {
  if (engine === 'GGUF') return EMBEDDED;
  const out = path.join(temporaryFolder(), engine.replaceAll(/\W+/g, '-'));
  if (fs.existsSync(out)) return out;
  makeOnnx('--out', out, ...GRAPHS[engine]);
  return out;
}

/** A folder of {@link FOUR_BITS}. */
export function fourBits(kind: keyof typeof FOUR_BITS): string {
  const out = path.join(temporaryFolder(), kind.replaceAll(/\W+/g, '-'));
  if (!fs.existsSync(out)) makeOnnx('--out', out, ...FOUR_BITS[kind]);
  return out;
}

/** The embedded model as a GGUF file that computes with 32 bits throughout, like the ONNX graphs. */
export function wideGguf(): string {
  const file = path.join(temporaryFolder(), 'wide.gguf');
  if (!fs.existsSync(file)) makeOnnx('--out', path.join(temporaryFolder(), 'wide'), '--gguf', file);
  return file;
}

/** `npm run make:onnx` with these arguments. */
export function makeOnnx(...args: string[]): void {
  const script = path.join(root, 'scripts/make-onnx.mjs');
  const { status, stderr } = spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
}

/** A runtime on one thread, closed by {@link closeAll}. */
export async function openRuntime(model: string, options: RuntimeOptions = {}): Promise<Runtime> {
  const runtime = await createRuntime({ model, gpu: false, threads: 1, maxSequences: 16, ...options });
  open.push(runtime);
  return runtime;
}

/** For `afterAll`. */
export async function closeAll(): Promise<void> {
  for (const runtime of open.splice(0)) await runtime.close();
  if (folder !== null) fs.rmSync(folder, { recursive: true, force: true });
  folder = null;
}

/** A request that asks one question. */
export function ask(
  question: string,
  fields: Partial<ChatCompletionRequest> = {},
): ChatCompletionRequest & { stream?: false } {
  return { messages: [{ role: 'user', content: question }], temperature: 0, ...fields, stream: false };
}

/** Questions that the model knows how to answer, one for each kind in turn. */
export function questions(count: number): string[] {
  const file = path.join(root, 'test/golden/models/questions.json');
  const rows = JSON.parse(fs.readFileSync(file, 'utf8')) as [string, string, string][];
  const all = [...new Set(rows.map(([, question]) => question))];
  const step = Math.max(1, Math.floor(all.length / count));
  return all.filter((_, i) => i % step === 0).slice(0, count);
}
