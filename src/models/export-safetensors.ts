/** A GGUF model and its adapters -> a safetensors file of the merged weights, as Hugging Face's models name them; or a folder with their configuration. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { writeFlushed } from '../common/index.ts';
import { type GgufHeader, shapesOf } from '../engine/gguf/index.ts';
import { loadAddon } from '../engine/native/index.ts';
import { huggingFaceConfig, safetensorsHeader, toHuggingFace } from './lora/index.ts';

export const PLAIN_TYPES = ['f32', 'bf16', 'f16'] as const;

type Merge = {
  readonly model: string;
  readonly header: GgufHeader;
  readonly files: readonly string[]; // GGUF LoRA files
  readonly scales: Float32Array;
  readonly type: (typeof PLAIN_TYPES)[number];
  readonly threads: number;
};

/** Writes the file. Fails with `UNSUPPORTED` for architectures whose names are not known. */
export async function writeSafetensorsModel(
  { model, header, files, scales, type, threads }: Merge,
  to: string,
): Promise<void> {
  const { architecture } = header;
  const headCount = header.number(`${architecture}.attention.head_count`) ?? 0;
  const kvHeadCount = header.number(`${architecture}.attention.head_count_kv`) ?? headCount;
  const tensors = toHuggingFace({ architecture, headCount, kvHeadCount, tensors: shapesOf([header]) });
  await writeFlushed(to, [safetensorsHeader(tensors, type)]);
  await loadAddon().appendTensors({
    model,
    files,
    scales,
    names: tensors.map(({ from }) => from),
    pairedHeads: Int32Array.from(tensors, ({ pairedHeads }) => pairedHeads),
    offsets: Float32Array.from(tensors, ({ offset }) => offset),
    type,
    threads,
    to,
  });
}

/** Writes `model.safetensors` and `config.json`. Also fails with `UNSUPPORTED` if the configuration cannot describe the model. */
export async function writeSafetensorsFolder(merge: Merge, folder: string): Promise<void> {
  const config = JSON.stringify(
    huggingFaceConfig({ metadata: merge.header.scalars, tensors: shapesOf([merge.header]) }, merge.type),
    null,
    2,
  );
  await fs.mkdir(folder);
  await writeFlushed(path.join(folder, 'config.json'), [`${config}\n`]);
  await writeSafetensorsModel(merge, path.join(folder, 'model.safetensors'));
}
