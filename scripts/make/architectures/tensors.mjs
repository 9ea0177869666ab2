// Keys of a model, and names of tensors that it may have -> the names and sizes of all its tensors, as the engine wants them. Its loader
// says which one it misses, or the right size of one, so that tensors are added until it is content.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { headOf } from '../../../bench/model/gguf.mjs';
import { loadAddon, openLibraries } from '../../../dist/engine/native/index.js';

const MISSING = /(?:missing tensor '([^']+)'|tensor '([^']+)' not found)/;
const SHAPE = /tensor '([^']+)' has wrong shape; expected ([0-9, ]+), got/;
/** As many for each tensor at most. */
const TRIES = 4000;

/** Map of a tensor's name -> its sizes, innermost first. `keyValues` as `writeGguf` takes them, `wanted`: tensors to have, in such a map. */
export async function wantedTensors(keyValues, wanted) {
  await openLibraries(false);
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-tensors-'));
  const file = path.join(folder, 'model.gguf');
  const shapes = new Map(wanted);
  const known = new Map(); // by the name without its layer: most layers are alike
  try {
    for (let i = 0; i < TRIES; i++) {
      const tensors = [...shapes].map(([name, dims]) => ({ name, type: 'f32', dims }));
      const { head, totalBytes } = headOf(keyValues, tensors);
      fs.writeFileSync(file, head);
      fs.truncateSync(file, totalBytes);
      const problem = await problemOf(file);
      if (problem === null) return shapes;
      const [, missing, notFound] = MISSING.exec(problem) ?? [];
      const [, wrong, sizes] = SHAPE.exec(problem) ?? [];
      const name = missing ?? notFound ?? wrong;
      if (!name) throw new Error(problem);
      const kind = name.replace(/^blk\.\d+\./, '');
      if (wrong) known.set(kind, sizes.split(',').map(Number));
      shapes.set(name, known.get(kind) ?? [1]);
    }
    throw new Error(`${TRIES} tries, and the engine still wants tensors`);
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

/** Returns the engine's error about a file's header, or null. Loading is cancelled before tensors are read. */
async function problemOf(file) {
  try {
    const cancelled = Int32Array.of(1);
    const model = await loadAddon().loadModel({
      path: file,
      useGpu: false,
      packs: 'none',
      mmap: false,
      cancelled,
    });
    model.close();
    return null;
  } catch (error) {
    return error.code === 'ABORTED' ? null : error.message;
  }
}
