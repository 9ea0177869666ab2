// Numbers of mutants from the parent -> what came of each. It may die of one; the parent knows which.
import fs from 'node:fs';
import path from 'node:path';
import { OnpolicyError } from '../../../dist/index.js';
import { mutateFolder, writeFolder } from './folder.mjs';
import { encode } from './gguf.mjs';
import { mutate } from './mutate.mjs';
import { randomFrom } from './random.mjs';

const [kind, folder, only, models] = process.argv.slice(2);
const { bases, odd, use } = await import(`.//${kind}.mjs`);
const all = (await bases(models, folder)).filter(({ name }) => !only || name === only);

process.on('message', async (seed) => {
  const { name, parts } = all[Math.abs(seed) % all.length];
  const mutant = parts.files ? mutateFolder(parts.files, seed) : mutateFile(name, parts, seed);
  const file = path.join(folder, mutant.name ?? 'folder');
  if (mutant.files) writeFolder(mutant.files, file);
  else fs.writeFileSync(file, mutant.bytes);
  const done = `${name}: ${mutant.done}`;
  process.send({ begins: done });
  const errors = await use(file, name);
  fs.rmSync(file, { recursive: true, force: true });
  process.send({
    seed,
    done,
    errors: errors.map((error) => [
      error instanceof OnpolicyError ? error.code : null,
      String(error?.stack ?? error),
    ]),
  });
});
process.send({ ready: true });

/** Every eighth mutant begins with a file of other sizes, where the kind has such. */
function oddOf(name, seed) {
  const random = randomFrom(~seed);
  return odd && random.chance(1 / 8) ? odd(name, random) : null;
}

/** Below 0 the file itself. */
function mutateFile(name, parts, seed) {
  if (seed < 0) return { done: 'undamaged', bytes: encode(parts), name: 'model.gguf' };
  return mutate(oddOf(name, seed) ?? parts, seed);
}
