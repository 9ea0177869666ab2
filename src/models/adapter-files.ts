/** Path of an adapter -> the identity of its content, and a GGUF file of it that fits its model. */
import { createHash } from 'node:crypto';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { isMissing, writing } from '../common/index.ts';
import { GgufHeader, readHeader } from '../engine/gguf/index.ts';
import { fromNative, OnpolicyError } from '../errors.ts';
import { readModel, toBase } from './formats/index.ts';
import { type BaseModel, checkAdapter, convertedBytes, convertPeft, PEFT_FILES } from './lora/index.ts';

/** Path of an adapter (GGUF file or PEFT folder) and an identity derived from its content. */
export type AdapterFile = { readonly identity: string; readonly path: string };

/** A GGUF file that an engine can load. */
export type OpenAdapter = AsyncDisposable & { readonly file: string };

const MAX_SHOWN = 500;

/** Returns the path and the current content identity of an adapter. Fails with `MODEL_NOT_FOUND`. */
export async function identify(given: string): Promise<AdapterFile> {
  try {
    const real = await fs.realpath(given);
    const isFolder = (await fs.stat(real)).isDirectory();
    const files = isFolder ? Object.values(PEFT_FILES).map((name) => path.join(real, name)) : [real];
    const hash = createHash('sha256').update(real);
    for (const file of files) {
      const stat = await fs.stat(file);
      if (!stat.isFile()) throw new Error(`${file} is not a file`);
      const { mtimeMs, size, ino } = stat;
      hash.update(` ${mtimeMs} ${size} ${ino}`);
    }
    return { identity: `lora-${hash.digest('hex').slice(0, 16)}`, path: real };
  } catch (cause) {
    if (!isMissing(cause)) throw fromNative(cause);
    throw new OnpolicyError(
      'MODEL_NOT_FOUND',
      `expected a GGUF file, or a folder with ${Object.values(PEFT_FILES).join(' and ')}, got ${JSON.stringify(given.slice(0, MAX_SHOWN))}`,
      { cause },
    );
  }
}

export class AdapterFiles {
  readonly #model: string;
  #base: Promise<BaseModel> | null = null;

  constructor(model: string) {
    this.#model = model;
  }

  async sizeOf({ path: given }: AdapterFile): Promise<number> {
    const stat = await fs.stat(given);
    return stat.isDirectory() ? await convertedBytes(given) : stat.size;
  }

  /**
   * Checks an adapter against the model. A PEFT folder is converted to a temporary file, which is deleted when the result is disposed of.
   * Fails with `MODEL_INVALID` if the adapter does not belong to this model, and with `UNSUPPORTED` for adapters other than plain LoRA.
   */
  async open({ path: given }: AdapterFile): Promise<OpenAdapter> {
    this.#base ??= readModel(this.#model).then(toBase);
    const base = await this.#base;
    if (!(await fs.stat(given)).isDirectory()) {
      await check(given, given, base);
      return { file: given, [Symbol.asyncDispose]: async () => {} };
    }
    const place = path.join(os.tmpdir(), 'onpolicy-adapter-');
    const folder = await writing(place, () => fs.mkdtemp(place));
    const remove = (): Promise<void> => fs.rm(folder, { recursive: true, force: true });
    try {
      const file = path.join(folder, 'adapter.gguf');
      await convertPeft(given, base, file);
      await check(file, given, base);
      return { file, [Symbol.asyncDispose]: remove };
    } catch (error) {
      await remove();
      throw error;
    }
  }
}

/** Checks the adapter in a GGUF file. `given` is the path that errors name. */
async function check(file: string, given: string, base: BaseModel): Promise<void> {
  const { values, tensors } = await readHeader(file);
  checkAdapter(new GgufHeader(given, values, tensors), base);
}
