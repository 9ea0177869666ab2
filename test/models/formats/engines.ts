/** Every engine on the same weights: the embedded model as a GGUF file, and as ONNX folders with different graphs. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import type { ChatCompletionRequest, RuntimeOptions } from '../../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';

const root = path.resolve(import.meta.dirname, '../../..');

/** The embedded model. */
export const EMBEDDED = path.join(root, 'models/onpolicy-tiny.gguf');

/** Logits of graphs that quantize activations depend on what runs beside them: they are compared run by run. */
export const DYNAMIC = 0.25;

/** Graphs of `npm run make:onnx`, by their special feature. */
export const GRAPHS = {
  'ONNX, padded on the left': [],
  'ONNX, fused attention, weights beside the graph': [
    '--attention',
    'grouped',
    '--last-rows',
    '--data-files',
    '1',
  ],
  'ONNX, no position_ids': ['--no-positions', '--last-rows'],
  'ONNX, 16-bit cache': ['--half'],
} as const;

/** Graphs with weights of four bits, and with the same values as floats. */
export const FOUR_BITS = {
  q4: ['--weights', 'q4', '--data-files', '1'],
  'q4, fused attention': ['--weights', 'q4', '--attention', 'grouped', '--last-rows'],
  rounded: ['--weights', 'rounded'],
} as const;

/** Rewrites of a graph at load: one operator for attention, only new keys and values, or none. */
export type Change = 'fused' | 'fresh' | 'none';

/** Graphs as exporters write them: how they are made, how they are changed, and how far logits may be from those of the file alone. */
export const LAYOUTS: Record<string, { args: readonly string[]; change: Change; within: number }> = {
  torch: { args: ['torch'], change: 'fused', within: 1e-4 },
  'torch, attention written out, last logits, two files of weights': {
    args: ['torch', '--written-out', '--last-rows', '--data-files', '2'],
    change: 'fused',
    within: 1e-4,
  },
  'torch, no position_ids': { args: ['torch', '--no-positions'], change: 'none', within: 1e-4 },
  'torch, fp16': { args: ['torch', '--weights', 'float16'], change: 'fresh', within: 0.05 },
  'torch, q4 with zeros': {
    args: ['torch', '--weights', 'q4', '--zeros', '--four-bit-head', '--data-files', '1'],
    change: 'fused',
    within: 1e-4,
  },
  'torch, q4f16': { args: ['torch', '--weights', 'q4f16'], change: 'fresh', within: 0.05 },
  'torch, q8': { args: ['torch', '--weights', 'q8'], change: 'fused', within: DYNAMIC },
  merged: { args: ['merged', '--no-positions'], change: 'none', within: 1e-4 },
  'merged, position_ids, fp16': { args: ['merged', '--weights', 'float16'], change: 'none', within: 0.05 },
  'merged, q8': { args: ['merged', '--no-positions', '--weights', 'q8'], change: 'none', within: DYNAMIC },
  'grouped, packed, three files of weights': {
    args: ['grouped', '--packed', '--data-files', '3'],
    change: 'fresh',
    within: 1e-4,
  },
  'grouped, position_ids, last logits, q4': {
    args: ['grouped', '--positions', '--last-rows', '--weights', 'q4'],
    change: 'fresh',
    within: 1e-4,
  },
  'grouped, q4f16 with zeros': {
    args: ['grouped', '--weights', 'q4f16', '--zeros', '--four-bit-head'],
    change: 'fresh',
    within: 0.05,
  },
};

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
  return engine === 'GGUF' ? EMBEDDED : folderOf(engine, GRAPHS[engine]);
}

/** A folder of {@link FOUR_BITS}. */
export function fourBits(kind: keyof typeof FOUR_BITS): string {
  return folderOf(kind, FOUR_BITS[kind]);
}

/** A folder of {@link LAYOUTS}. */
export function layoutOf(name: string): string {
  return folderOf(name, ['--layout', ...LAYOUTS[name]!.args]);
}

function folderOf(name: string, args: readonly string[]): string {
  const out = path.join(temporaryFolder(), name.replaceAll(/\W+/g, '-'));
  if (!fs.existsSync(out)) makeOnnx('--out', out, ...args);
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
  const script = path.join(root, 'scripts/make/make-onnx.mjs');
  const { status, stderr } = spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
}

/** A runtime on one thread, closed by {@link closeAll}. */
export async function openRuntime(
  model: NonNullable<RuntimeOptions['model']>,
  options: RuntimeOptions = {},
): Promise<Runtime> {
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
