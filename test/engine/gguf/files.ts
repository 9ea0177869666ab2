/** The scripts that damage model files are plain JavaScript: what tests use of them, typed. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

export type Key = { name: string; type: number; of?: number; items: Buffer[]; count?: bigint };
export type Tensor = { name: string; dims: bigint[]; type: number; data: Buffer; offset?: bigint };
export type Parts = {
  keys: Key[];
  tensors: Tensor[];
  alignment: number;
  version?: number;
  counts?: { keys?: bigint; tensors?: bigint };
};

export type Totals = { deaths: number; hangs: number; foreign: number; refused: number; accepted: number };

type Scripts = {
  'gguf.mjs': { decode(bytes: Buffer): Parts; encode(parts: Parts): Buffer };
  'models.mjs': { MODEL_NAMES: readonly string[]; tinyModel(name: string): Buffer };
  'fuzz.mjs': {
    fuzz(options: {
      kind: string;
      first: number;
      count: number;
      processes: number;
      say(line: string): void;
    }): Promise<Totals>;
  };
};

export async function fuzzScript<Name extends keyof Scripts>(name: Name): Promise<Scripts[Name]> {
  return (await import(
    new URL(`../../../scripts/fuzz/files/${name}`, import.meta.url).href
  )) as Scripts[Name];
}

export const { decode, encode } = await fuzzScript('gguf.mjs');
export const { MODEL_NAMES, tinyModel } = await fuzzScript('models.mjs');

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-gguf-'));
process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }));

/** Bytes as a file. */
export function fileOf(bytes: Uint8Array, name = 'model.gguf'): string {
  const file = path.join(folder, name);
  fs.writeFileSync(file, bytes);
  return file;
}

/** A tiny model with changed parts, as a file. */
export function changed(model: string, change: (parts: Parts) => void): string {
  const parts = decode(tinyModel(model));
  change(parts);
  return fileOf(encode(parts));
}

export const words = (...values: number[]): Buffer => Buffer.from(Uint32Array.from(values).buffer);
export const floats = (...values: number[]): Buffer => Buffer.from(Float32Array.from(values).buffer);

/** A change that gives a key this value, and adds it where there is none. */
export function setKey(name: string, type: number, ...items: Buffer[]): (parts: Parts) => void {
  return (parts) => {
    parts.keys = parts.keys.filter((key) => key.name !== name);
    parts.keys.push({ name, type, items });
  };
}

/** A change of one tensor. */
export function editTensor(name: string, edit: (tensor: Tensor) => void): (parts: Parts) => void {
  return ({ tensors }) => edit(tensors.find((tensor) => tensor.name === name)!);
}

/** A change of an element of an array of the vocabulary. */
export function setToken(id: number, text: string): (parts: Parts) => void {
  return ({ keys }) => {
    keys.find(({ name }) => name === 'tokenizer.ggml.tokens')!.items[id] = Buffer.from(text);
  };
}
