/** A PEFT folder and its base model -> a GGUF LoRA file, written tensor by tensor. */
import fs, { type FileHandle } from 'node:fs/promises';
import path from 'node:path';
import { writing } from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';
import type { BaseModel } from './check-adapter.ts';
import { adapterHeader, padding } from './gguf-adapter.ts';
import { KINDS } from './peft-adapter.ts';
import { type PeftScales, readPeftConfig } from './peft-config.ts';
import { columnPlaces, hasPairedRows, inverse, pickColumns, pickRows, rowPlaces } from './row-order.ts';
import { readPlaces, readTensor, type TensorPlace } from './safetensors.ts';

export const PEFT_FILES = { config: 'adapter_config.json', weights: 'adapter_model.safetensors' } as const;

/** Paths of Hugging Face layers -> their names in a GGUF file, for layers with the same matrix in both. */
const NAMES: Readonly<Record<string, string>> = {
  ...KINDS,
  'self_attn.dense': 'attn_output',
  'mlp.fc1': 'ffn_up',
  'mlp.fc2': 'ffn_down',
  'mlp.c_fc': 'ffn_up',
  'mlp.c_proj': 'ffn_down',
  'mlp.gate': 'ffn_gate_inp',
  'block_sparse_moe.gate': 'ffn_gate_inp',
};

/** Architectures whose GGUF files order the rows of all these layers as Hugging Face does, or as row-order.ts describes. */
const KNOWN = new Set([
  'qwen2',
  'qwen2moe',
  'qwen2vl',
  'qwen3',
  'qwen3moe',
  'qwen3vl',
  'qwen35',
  'qwen35moe',
  'gemma',
  'gemma2',
  'gemma3',
  'gemma4',
  'phi2',
  'phi3',
  'starcoder2',
  'stablelm',
  'command-r',
  'cohere2',
  'olmo2',
  'seed_oss',
  'exaone4',
  'ernie4_5',
  'hunyuan-dense',
  'glm4',
  'glm4moe',
  'lfm2',
  'gpt-oss',
]);

/** Returns true if the row order in GGUF files of this architecture is known for every layer that can have an adapter. */
export function hasKnownRows(architecture: string): boolean {
  return hasPairedRows(architecture) || KNOWN.has(architecture);
}

const IN_LAYER =
  /^base_model\.model\.((?:model\.)?(?:language_model\.)?(?:model\.)?layers\.(\d+)\.(.+))\.lora_([AB])(?:\.default)?\.weight$/;
const OUTPUT = /^base_model\.model\.((?:language_model\.)?lm_head)\.lora_([AB])(?:\.default)?\.weight$/;

type Factor = {
  readonly place: TensorPlace;
  readonly name: string;
  readonly isB: boolean;
  /** Factor for the numbers. */
  readonly gain: number;
  /** (rows or columns) positions in Hugging Face's model. Null if the order is the same. */
  readonly order: Int32Array | null;
};

/** Estimates the bytes of the GGUF file of a PEFT folder, whose numbers have 32 bits. */
export async function convertedBytes(folder: string): Promise<number> {
  await using weights = await fs.open(path.join(folder, PEFT_FILES.weights));
  const places = await readPlaces(weights);
  return places.reduce((sum, { shape }) => sum + 4 * shape.reduce((product, size) => product * size, 1), 0);
}

/**
 * Writes the adapter of a PEFT folder as a GGUF LoRA file for `base`.
 * @throws OnpolicyError `MODEL_INVALID` for a damaged folder or layers that the model does not have, `UNSUPPORTED` for variants of LoRA and
 * for architectures with another layout of layers
 */
export async function convertPeft(folder: string, base: BaseModel, target: string): Promise<void> {
  const { architecture } = base;
  if (!hasKnownRows(architecture))
    throw new OnpolicyError(
      'UNSUPPORTED',
      `a PEFT folder for a ${architecture} model is not read: llama.cpp's convert_lora_to_gguf.py makes a GGUF file from it, which is`,
    );
  const scales = readPeftConfig(await fs.readFile(path.join(folder, PEFT_FILES.config), 'utf8'));
  await using weights = await fs.open(path.join(folder, PEFT_FILES.weights));
  const factors = (await readPlaces(weights)).map((place) => toFactor(place, base, scales));
  const tensors = factors.map(({ place, name }) => ({ name, shape: place.shape.toReversed() }));
  await using file = await writing(target, () => fs.open(target, 'wx', 0o600));
  const write = (bytes: Uint8Array) => writing(target, () => writeAll(file, bytes));
  await write(adapterHeader({ architecture, alpha: 0, tensors })); // the factors include their scale
  for (const { place, isB, order, gain } of factors) {
    const given = await readTensor(weights, place);
    const values = isB ? pickRows(given, place.shape[1]!, order) : pickColumns(given, order);
    if (gain !== 1) for (let i = 0; i < values.length; i++) values[i]! *= gain;
    await write(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
    await write(padding(values.byteLength));
  }
}

function toFactor(place: TensorPlace, base: BaseModel, { rankOf, scaleOf }: PeftScales): Factor {
  const { name, shape } = place;
  const inLayer = IN_LAYER.exec(name);
  const atEnd = OUTPUT.exec(name);
  const kind = inLayer ? NAMES[inLayer[3]!] : undefined;
  const weight = atEnd ? 'output.weight' : `blk.${inLayer?.[2]}.${kind}.weight`;
  if (!atEnd && !kind) return fail(`the tensor ${name} is not a factor of a layer that can have an adapter`);
  if (!Object.hasOwn(base.tensors, weight)) return fail(`${name}: the model has no weight ${weight}`);
  const layer = (inLayer ?? atEnd!)[1]!;
  const isB = (inLayer?.[4] ?? atEnd?.[2]) === 'B';
  const rank = shape[isB ? 1 : 0];
  if (shape.length !== 2 || rank !== rankOf(layer))
    return fail(
      `${name}: expected a matrix of rank ${rankOf(layer)}, as adapter_config.json says, got the shape ${shape.join(' x ')}`,
    );
  const isRotated = hasPairedRows(base.architecture) && (kind === 'attn_q' || kind === 'attn_k');
  if (isRotated && isB && shape[0]! % base.headSize !== 0)
    return fail(`${name}: expected rows in heads of ${base.headSize}, got ${shape[0]}`);
  const headCount = shape[0]! / base.headSize;
  const heads = { ...base, headCount, kvHeadCount: headCount };
  return {
    place,
    name: `${weight}.lora_${isB ? 'b' : 'a'}`,
    isB,
    gain: isB ? scaleOf(layer) : 1,
    order: inverse(
      isB ? rowPlaces(kind ?? '', shape[0]!, heads) : columnPlaces(kind ?? '', shape[1]!, heads),
    ),
  };
}

async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += (await file.write(bytes, at)).bytesWritten;
}

function fail(message: string): never {
  throw new OnpolicyError('MODEL_INVALID', message);
}
