/** A trainer's state <-> the files of a checkpoint folder: the adapter twice (for llama.cpp and for PEFT), and the optimizer. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { ifMissing, isMissing, writeFlushed } from '../common/index.ts';
import type { AdapterWeights } from '../engine/native/index.ts';
import { fromNative, OnpolicyError } from '../errors.ts';
import {
  type FloatTensor,
  fromPeft,
  type PeftModel,
  peftConfig,
  plainAlpha,
  readGgufAdapter,
  readPeftConfig,
  readSafetensors,
  toPeft,
  unnamedModule,
  writeGgufAdapter,
  writeSafetensors,
} from '../models/lora/index.ts';

/** State of AdamW between steps. */
export type OptimizerState = {
  readonly stepCount: number;
  readonly firstMoment: AdapterWeights;
  readonly secondMoment: AdapterWeights;
};

/** Names of a checkpoint's files. */
export const CHECKPOINT_FILES = {
  gguf: 'adapter.gguf',
  peft: 'adapter_model.safetensors',
  peftConfig: 'adapter_config.json',
  optimizer: 'optimizer.safetensors',
} as const;

/** Writes the files into `folder`, each flushed to the disk. Files for PEFT are written only if PEFT has names for all modules. */
export async function saveCheckpoint(
  folder: string,
  model: PeftModel,
  weights: AdapterWeights,
  optimizer: OptimizerState,
): Promise<void> {
  const file = (name: string) => path.join(folder, name);
  await writeFlushed(
    file(CHECKPOINT_FILES.gguf),
    writeGgufAdapter({ ...model, alpha: plainAlpha(model), weights }),
  );
  await writeFlushed(file(CHECKPOINT_FILES.optimizer), writeOptimizer(model, optimizer));
  if (unnamedModule(weights, model.architecture) !== null) return;
  const config = JSON.stringify(peftConfig(weights, model), null, 2);
  await writeFlushed(file(CHECKPOINT_FILES.peft), writeSafetensors(toPeft(weights, model)));
  await writeFlushed(file(CHECKPOINT_FILES.peftConfig), [`${config}\n`]);
}

/** Reads an adapter from a checkpoint folder, a GGUF LoRA file or a PEFT safetensors file. */
export async function readAdapter(source: string, model: PeftModel): Promise<AdapterWeights> {
  const isFolder = (await fs.stat(source).catch(ifMissing(null)))?.isDirectory() ?? false;
  const file = isFolder ? await adapterIn(source) : source;
  if (!file.endsWith('.gguf')) {
    const tensors = readSafetensors(await readFile(file));
    if (isFolder) await requireScale(source, Object.keys(tensors.tensors), model);
    return fromPeft(tensors, model);
  }
  const adapter = await readGgufAdapter(file);
  const expected = { ...model, alpha: Math.fround(plainAlpha(model)) };
  for (const key of ['architecture', 'rank', 'alpha'] as const)
    if (adapter[key] !== expected[key])
      throw new OnpolicyError(
        'INVALID_REQUEST',
        `${file}: its ${key} is ${adapter[key]}; the trainer was opened with ${expected[key]}`,
      );
  return adapter.weights;
}

async function adapterIn(folder: string): Promise<string> {
  const peft = path.join(folder, CHECKPOINT_FILES.peft);
  const hasPeft = await fs.access(peft).then(() => true, ifMissing(false));
  const gguf = path.join(folder, CHECKPOINT_FILES.gguf);
  const hasGguf = await fs.access(gguf).then(() => true, ifMissing(false));
  return hasPeft || !hasGguf ? peft : gguf;
}

/** Throws if the scale in the folder differs from the model's: the same factors with another scale are another adapter. */
async function requireScale(folder: string, names: readonly string[], model: PeftModel): Promise<void> {
  const file = path.join(folder, CHECKPOINT_FILES.peftConfig);
  const { scaleOf } = readPeftConfig(Buffer.from(await readFile(file)).toString());
  const wanted = plainAlpha(model) / model.rank;
  for (const name of names) {
    const [, layer = ''] = /^base_model\.model\.(.+)\.lora_[AB]/.exec(name) ?? [];
    const scale = scaleOf(layer);
    if (Math.abs(scale - wanted) > 1e-6 * wanted)
      throw new OnpolicyError(
        'INVALID_REQUEST',
        `${file}: the adapter's scale is ${scale}, by r, lora_alpha and use_rslora; the trainer was opened with ${wanted}, by rank, alpha and rslora`,
      );
  }
}

/** Reads the optimizer's state of a checkpoint folder. */
export async function readOptimizer(folder: string): Promise<OptimizerState> {
  const { tensors, metadata } = readSafetensors(
    await readFile(path.join(folder, CHECKPOINT_FILES.optimizer)),
  );
  const moments: Record<string, Record<string, { a: Float32Array; b: Float32Array }>> = {};
  for (const [name, { values }] of Object.entries(tensors)) {
    const match = /^(firstMoment|secondMoment)\.(.+)\.(a|b)$/.exec(name);
    if (!match) throw new OnpolicyError('MODEL_INVALID', `${folder}: unexpected optimizer tensor ${name}`);
    const [, moment, module, factor] = match as unknown as [string, string, string, 'a' | 'b'];
    const ofMoment = moments[moment] ?? {};
    ofMoment[module] = { ...(ofMoment[module] ?? { a: values, b: values }), [factor]: values };
    moments[moment] = ofMoment;
  }
  return {
    stepCount: Number(metadata['stepCount'] ?? 0),
    firstMoment: moments['firstMoment'] ?? {},
    secondMoment: moments['secondMoment'] ?? {},
  };
}

function writeOptimizer({ rank }: PeftModel, optimizer: OptimizerState): Uint8Array[] {
  const tensors = (['firstMoment', 'secondMoment'] as const).flatMap((moment) =>
    Object.entries(optimizer[moment]).flatMap(([name, { a, b, experts = 1 }]): [string, FloatTensor][] => {
      const all = experts > 1 ? [experts] : [];
      return [
        [`${moment}.${name}.a`, { shape: [...all, rank, a.length / rank / experts], values: a }],
        [`${moment}.${name}.b`, { shape: [...all, b.length / rank / experts, rank], values: b }],
      ];
    }),
  );
  return writeSafetensors({
    tensors: Object.fromEntries(tensors),
    metadata: { stepCount: String(optimizer.stepCount) },
  });
}

async function readFile(file: string): Promise<Uint8Array> {
  try {
    return await fs.readFile(file);
  } catch (cause) {
    throw isMissing(cause)
      ? new OnpolicyError('MODEL_NOT_FOUND', `cannot read ${file}`, { cause })
      : fromNative(cause);
  }
}
