// A folder of a checkpoint, which is a PEFT folder, too -> what this library does with it: answered with, trained on.
import fs from 'node:fs';
import path from 'node:path';
import { createRuntime, OnpolicyError } from '../../../dist/index.js';
import { openTrainer } from '../../../dist/rl/public.js';
import { readFolder } from './folder.mjs';
import { tinyModel } from './models.mjs';

export const names = ['llama', 'qwen3'];
const trainers = {};
let runtime;

/** Undamaged folders by the name of their model, made in `folder`. */
export async function bases(_, folder) {
  const models = Object.fromEntries(names.map((name) => [name, path.join(folder, `${name}.gguf`)]));
  for (const [name, model] of Object.entries(models)) {
    fs.writeFileSync(model, tinyModel(name));
    trainers[name] = await openTrainer({ model, rank: 4, gpu: false, threads: 1 });
    await trainers[name].save(path.join(folder, name));
  }
  runtime = await createRuntime({
    models,
    gpu: false,
    threads: 1,
    contextSize: 64,
    maxSequences: 2,
    home: path.join(folder, 'home'),
  });
  return names.map((name) => ({ name, parts: { files: readFolder(path.join(folder, name)) } }));
}

/** Gives the errors that were thrown, in order. */
export async function use(given, name) {
  const errors = [];
  const adapters = [{ file: given }];
  await runtime
    .createTextCompletion({ model: name, prompt: 'the', max_tokens: 1, temperature: 0, adapters })
    .catch((error) => errors.push(error));
  // A trainer needs the optimizer's file, and a rank and scale that are its own.
  for (const load of ['load', 'loadAdapter'])
    await trainers[name][load](given).catch((error) => {
      if (!(error instanceof OnpolicyError)) errors.push(error);
    });
  return errors;
}
