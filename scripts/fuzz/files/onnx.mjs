// A folder of an ONNX model -> what this library does with it: loaded, asked for an answer, tokens, a constrained answer.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { createRuntime } from '../../../dist/index.js';
import { readFolder } from './folder.mjs';
import { tinyModel } from './models.mjs';

const MAKE = fileURLToPath(new URL('../../make/make-onnx.mjs', import.meta.url));

export const names = ['llama'];

/** An undamaged folder, made in `folder`. */
export function bases(_, folder) {
  const model = path.join(folder, 'model.gguf');
  fs.writeFileSync(model, tinyModel('llama/bpe'));
  execFileSync(process.execPath, [MAKE, '--model', model, '--out', path.join(folder, 'onnx')], {
    stdio: 'ignore',
  });
  const files = readFolder(path.join(folder, 'onnx'));
  return [{ name: names[0], parts: { files } }];
}

/** Gives the errors that were thrown, in order. */
export async function use(folder) {
  const errors = [];
  const attempt = async (work) => {
    try {
      return await work();
    } catch (error) {
      errors.push(error);
    }
  };
  const runtime = await attempt(() =>
    createRuntime({ model: folder, gpu: false, threads: 1, contextSize: 64, maxSequences: 1, home: `${folder}.home` }),
  ); // biome-ignore format: one row
  if (!runtime) return errors;
  const prompt = 'Hello  the\u0000 \ud83d\ude00 <s>';
  await attempt(() => runtime.createTextCompletion({ prompt, max_tokens: 2, temperature: 0 }));
  if (errors.length === 0)
    await attempt(() =>
      runtime.createCompletion({ messages: [{ role: 'user', content: prompt }], max_completion_tokens: 2 }),
    );
  await attempt(() => runtime.close());
  fs.rmSync(`${folder}.home`, { recursive: true, force: true });
  return errors;
}
