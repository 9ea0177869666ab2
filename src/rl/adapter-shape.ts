/** The folder of a checkpoint -> rank, scale and modules of its adapter. Reads headers only. */
import path from 'node:path';
import { readText } from '../common/index.ts';
import { readHeader } from '../engine/gguf/index.ts';
import { OnpolicyError } from '../errors.ts';
import { plainAlpha } from '../models/lora/index.ts';
import { CHECKPOINT_FILES } from './checkpoint-files.ts';

/** Everything about an adapter that a trainer must share to continue it. */
export type AdapterShape = {
  readonly rank: number;
  readonly alpha: number;
  readonly rslora: boolean;
  /** Full names, for example `blk.0.attn_q`. */
  readonly modules: readonly string[];
};

/**
 * Reads the shape of a checkpoint's adapter.
 * @throws OnpolicyError `MODEL_NOT_FOUND`, `MODEL_INVALID`
 */
export async function readAdapterShape(folder: string): Promise<AdapterShape> {
  const header = await readHeader(path.join(folder, CHECKPOINT_FILES.gguf));
  const modules: string[] = [];
  let rank = 0;
  for (const [name, { shape }] of header.tensors) {
    const [, module] = /^(.+)\.weight\.lora_a$/.exec(name) ?? [];
    if (module === undefined) continue;
    modules.push(module);
    rank = Math.max(rank, shape[1]!);
  }
  if (rank === 0) header.fail('expected a LoRA adapter');
  const plain = header.number('adapter.lora.alpha', { type: 'f32' }) ?? 0;
  return { rank, ...((await scaleInPeft(folder, rank, plain)) ?? { alpha: plain, rslora: false }), modules };
}

/**
 * Returns the scale as the caller gave it; the GGUF file only has alpha and scale combined. Returns null without a matching PEFT
 * configuration.
 */
async function scaleInPeft(
  folder: string,
  rank: number,
  plain: number,
): Promise<Pick<AdapterShape, 'alpha' | 'rslora'> | null> {
  const file = path.join(folder, CHECKPOINT_FILES.peftConfig);
  const text = await readText(file);
  if (text === null) return null;
  let config: { readonly lora_alpha?: unknown; readonly use_rslora?: unknown };
  try {
    config = JSON.parse(text) as typeof config;
  } catch (cause) {
    throw new OnpolicyError('MODEL_INVALID', `${file} is damaged`, { cause });
  }
  const { lora_alpha: alpha, use_rslora: rslora = false } = config;
  if (typeof alpha !== 'number' || typeof rslora !== 'boolean') return null;
  return Math.fround(plainAlpha({ alpha, rank, rslora })) === plain ? { alpha, rslora } : null;
}
