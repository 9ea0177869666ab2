/** A GGUF file, which may be split into several -> what its headers say. */
import { OnpolicyError } from '../errors.ts';
import { checkTextModel, type GgufHeader, readHeader } from '../gguf/index.ts';
import { openLibraries } from '../native/index.ts';
import type { Gpu } from '../protocol/index.ts';
import { type ModelShape, toShape } from './memory.ts';

/** The parts of a split file begin counting at 1. */
const SPLIT_NAME = /-(\d{5})-of-(\d{5})\.gguf$/;

/** Parts of other models, whose states they read: they answer nothing. The first one may draft. */
const PARTS = /^(eagle3|dflash|gemma4-assistant)$/;

/**
 * Reads the headers of a model, for an engine that runs on this `gpu`. Fails with `MODEL_NOT_FOUND`, `MODEL_INVALID`, or `UNSUPPORTED`
 * for what is no model by itself: with `mayDraft`, an EAGLE-3 file is one.
 */
export async function describeGguf({
  path,
  gpu,
  mayDraft = false,
}: {
  path: string;
  gpu: Gpu;
  mayDraft?: boolean;
}): Promise<ModelShape> {
  await openLibraries(gpu);
  const parts = await readModel(path);
  const { architecture } = parts[0]!;
  if (PARTS.test(architecture) && !(mayDraft && architecture === 'eagle3'))
    throw new OnpolicyError(
      'UNSUPPORTED',
      `${path}: expected a model that answers by itself, got one of ${architecture}, which reads the states of another model`,
    );
  return toShape(parts);
}

/** The headers of a model that can be computed with, in order. Fails as {@link describeGguf}. */
export async function readModel(file: string): Promise<GgufHeader[]> {
  const parts = await readHeaders(file);
  await checkTextModel(parts);
  return parts;
}

/** The headers of a file and of the others that it says to be split into. */
export async function readHeaders(file: string): Promise<GgufHeader[]> {
  const first = await readHeader(file);
  const count = first.number('split.count', { type: 'u16' }) ?? 1;
  if (count < 2) return [first];
  if (first.number('split.no', { type: 'u16' }) !== 0)
    first.fail('expected the first of the files of a split model');
  const named = SPLIT_NAME.exec(file);
  if (Number(named?.[1]) !== 1 || Number(named?.[2]) !== count)
    first.refuse('split.count', `a file that is named *-00001-of-${digits(count)}.gguf`, file);
  const others = Array.from({ length: count - 1 }, async (_, i) => {
    const part = await readHeader(file.replace(SPLIT_NAME, `-${digits(i + 2)}-of-${digits(count)}.gguf`));
    if (part.number('split.no', { type: 'u16' }) !== i + 1)
      part.refuse('split.no', `${i + 1}`, part.values.get('split.no')?.value);
    return part;
  });
  return [first, ...(await Promise.all(others))];
}

function digits(count: number): string {
  return String(count).padStart(5, '0');
}
