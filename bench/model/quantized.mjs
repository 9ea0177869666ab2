// A shape's name -> its model with the matrices in Q4_K_M, made of the one in Q8_0 by libllama; the model of a type's name.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { buildBare } from '../bare/build.mjs';
import { ensureModel, MODELS_FOLDER } from './make.mjs';

/** Path of the model, written if absent. */
export async function ensureQ4Model({ shape = 'qwen3-0.6b', out, force = false } = {}) {
  const file = out ?? path.join(MODELS_FOLDER, `${shape}-q4_k_m.gguf`);
  if (fs.existsSync(file) && !force) return file;
  const { program } = await buildBare({ name: 'quantize' });
  execFileSync(program, [ensureModel({ shape }), `${file}.partial`], { stdio: ['ignore', 'ignore', 'pipe'] });
  fs.renameSync(`${file}.partial`, file);
  return file;
}

/** The types that `ensureOf` knows. */
export const TYPE_NAMES = ['q8_0', 'q4_k_m', 'f16', 'f32'];

/** Path of the default shape's model of a type. */
export async function ensureOf(type) {
  if (!TYPE_NAMES.includes(type))
    throw new Error(`type: expected one of ${TYPE_NAMES.join(', ')}, got ${type}`);
  return type === 'q4_k_m' ? await ensureQ4Model() : ensureModel({ type });
}
