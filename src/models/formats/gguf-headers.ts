/** A GGUF file, which may be split into several -> the facts in its headers. */

import { ASSISTANT, checkTextModel, type GgufHeader, readHeader } from '../../engine/gguf/index.ts';
import { openLibraries } from '../../engine/native/index.ts';
import { OnpolicyError } from '../../errors.ts';
import type { Gpu } from '../../protocol/index.ts';
import { type ModelShape, toShape } from './memory.ts';

/** Name of a part of a split file. Parts are counted from 1. */
const SPLIT_NAME = /-(\d{5})-of-(\d{5})\.gguf$/;

/** Architectures that read the states of another model and cannot answer alone -> whether they may draft. */
const PARTS = new Map([
  ['eagle3', true],
  ['dflash', false],
  [ASSISTANT, true],
]);

/** Architectures that are not served, the models that are expected instead, and why. Tokens of diffusion models see those after them. */
const REFUSED: readonly (readonly [architectures: RegExp, expected: string, reason: string])[] = [
  [
    /^(dream|llada|llada-moe|rnd1)$/,
    'a model that writes one token after the other',
    'which fills in a text in rounds (diffusion)',
  ],
  [
    /^deepseek4$/,
    'a model whose memory can be predicted',
    'whose caches of several kinds this library does not predict',
  ],
];

/**
 * Reads the headers of a model, for an engine that runs on this `gpu`. Fails with `MODEL_NOT_FOUND`, `MODEL_INVALID`, or `UNSUPPORTED` for
 * files that are no complete model. With `mayDraft`, an EAGLE-3 file and an assistant are accepted.
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
  const drafts = PARTS.get(architecture);
  if (drafts !== undefined && !(drafts && mayDraft))
    throw new OnpolicyError(
      'UNSUPPORTED',
      `${path}: expected a model that answers by itself, got one of ${architecture}, which reads the states of another model`,
    );
  const [, expected, reason] = REFUSED.find(([names]) => names.test(architecture)) ?? [];
  if (expected !== undefined)
    throw new OnpolicyError(
      'UNSUPPORTED',
      `${path}: expected ${expected}, got one of ${architecture}, ${reason}`,
    );
  return toShape(parts);
}

/** Returns the headers of a model that can be computed with, in order. Fails as {@link describeGguf}. */
export async function readModel(file: string): Promise<GgufHeader[]> {
  const parts = await readHeaders(file);
  await checkTextModel(parts);
  return parts;
}

/** Returns the header of a file and those of the other parts if the file is split. */
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
