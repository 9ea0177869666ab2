/** The golden numbers of training, made in float64. */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AdapterWeights } from '../../src/engine/native/index.ts';
import { readSafetensors } from '../../src/models/lora/safetensors.ts';
import type { PackedRow } from '../../src/protocol/index.ts';
import { openTrainer, type Trainer } from '../../src/rl/trainer.ts';

/** Models and the numbers expected of training them. */
const folder = fileURLToPath(new URL('../golden/training/', import.meta.url));

/** Reads a file of `test/golden/training`: the row, and the expected numbers of each step. */
export function readGolden(name: string) {
  const file = path.join(folder, `${name}.safetensors`);
  const { tensors, metadata } = readSafetensors(fs.readFileSync(file));
  const integers = (key: string) => Int32Array.from(tensors[key]!.values);
  const weights = (prefix: string): AdapterWeights => {
    const modules = Object.keys(tensors).flatMap((key) =>
      key.startsWith(`${prefix}.`) && key.endsWith('.lora_a') ? [key.slice(prefix.length + 1, -7)] : [],
    );
    return Object.fromEntries(
      modules.map((module) => [
        module,
        {
          a: tensors[`${prefix}.${module}.lora_a`]!.values,
          b: tensors[`${prefix}.${module}.lora_b`]!.values,
        },
      ]),
    );
  };
  const row: PackedRow = {
    tokens: integers('tokens'),
    positions: integers('positions'),
    groupIds: integers('group_ids'),
    parentIds: integers('parent_ids'),
    logitRows: integers('logit_rows'),
    targetTokens: integers('target_tokens'),
  };
  const numbers = (key: string) => tensors[key]!.values;
  const model = path.join(path.dirname(file), metadata['model']!);
  return { model, metadata, row, numbers, weights };
}

export type Golden = ReturnType<typeof readGolden>;

/** A trainer with the adapter that the golden steps began with; on another file of the same model if one is given. */
export async function openGolden(golden: Golden, model = golden.model): Promise<Trainer> {
  const { metadata } = golden;
  const trainer = await openTrainer({
    model,
    rank: Number(metadata['rank']),
    alpha: Number(metadata['alpha']),
    modules: metadata['modules']!.split(','),
    gpu: false,
  });
  await trainer.loadAdapter(golden.weights('init'));
  return trainer;
}
