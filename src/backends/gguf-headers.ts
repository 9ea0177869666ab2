/** A GGUF file, which may be split into several -> what its headers say. */
import { fromNative } from '../errors.ts';
import { type FileFacts, loadAddon, onDisk, openLibraries } from '../native/index.ts';
import type { Gpu } from '../protocol/index.ts';
import { type ModelShape, toShape } from './memory.ts';

type GgufFile = { readonly path: string; readonly gpu: Gpu };

/** The parts of a split file begin counting at 1. */
const SPLIT_NAME = /-(\d{5})-of-(\d{5})\.gguf$/;

/** Reads the headers of a GGUF file and of the files that it is split into. Fails with `MODEL_NOT_FOUND` or `MODEL_INVALID`. */
export async function describeGguf(options: GgufFile): Promise<ModelShape> {
  return toShape(await readHeaders(options));
}

/** The headers themselves, in order. Fails as {@link describeGguf}. */
export async function readHeaders({ path: file, gpu }: GgufFile): Promise<FileFacts[]> {
  await openLibraries(gpu);
  const parts = Number(SPLIT_NAME.exec(file)?.[2] ?? 1);
  const files = Array.from({ length: parts }, (_, i) =>
    file.replace(SPLIT_NAME, (_name, _at, count) => `-${String(i + 1).padStart(5, '0')}-of-${count}.gguf`),
  );
  try {
    return await Promise.all(files.map((part) => loadAddon().describeFile(onDisk(part))));
  } catch (error) {
    throw fromNative(error);
  }
}
