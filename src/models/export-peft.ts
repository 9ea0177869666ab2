/** GGUF LoRA files of one model -> a PEFT folder with one adapter that equals their sum. */
import path from 'node:path';
import { writeFlushed } from '../common/index.ts';
import type { GgufHeader } from '../engine/gguf/index.ts';
import { errorAt } from '../errors.ts';
import {
  type CountedAdapter,
  deltaNetHeads,
  hasKnownRows,
  PEFT_FILES,
  type PeftModel,
  peftConfig,
  sumAdapters,
  toPeft,
  unnamedModule,
  writeSafetensors,
} from './lora/index.ts';

/** Architectures whose layers have different names in Hugging Face's models. */
const OTHER_NAMES = new Set(['phi2', 'starcoder2']);

/** Writes the files of the folder, each flushed. `adapters` are adapters with 32-bit factors, and the scale of each. */
export async function writePeftFolder(
  folder: string,
  adapters: readonly CountedAdapter[],
  header: GgufHeader,
): Promise<void> {
  const { architecture } = header;
  if (!hasKnownRows(architecture) || OTHER_NAMES.has(architecture))
    throw errorAt('format', 'UNSUPPORTED', `no PEFT folder is written for a ${architecture} model`);
  for (const { weights } of adapters) {
    const unnamed = unnamedModule(weights, architecture);
    if (unnamed !== null)
      throw errorAt(
        'format',
        'UNSUPPORTED',
        `PEFT has no name for the experts of ${unnamed} in a ${architecture} model`,
      );
  }
  const widths = (module: string): number => header.tensors.get(`${module}.weight`)!.shape[0]!;
  const sum = sumAdapters(adapters, widths);
  const number = (key: string): number => header.number(`${architecture}.${key}`) ?? 0;
  const headCount = number('attention.head_count');
  const model: PeftModel = {
    architecture,
    layerCount: number('block_count'),
    headCount,
    kvHeadCount: number('attention.head_count_kv') || headCount,
    deltaNet: deltaNetHeads(header),
    rank: sum.rank,
    alpha: sum.rank, // the factors hold their scale
  };
  const file = (name: string): string => path.join(folder, name);
  await writeFlushed(file(PEFT_FILES.weights), writeSafetensors(toPeft(sum.weights, model)));
  const config = JSON.stringify(peftConfig(sum.weights, model), null, 2);
  await writeFlushed(file(PEFT_FILES.config), [`${config}\n`]);
}
