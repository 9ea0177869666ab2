// A GGUF file of a text model -> what this library does with it: inspected, loaded, asked for an answer, tokens, embeddings.
import fs from 'node:fs';
import path from 'node:path';
import { createRuntime, inspectModel } from '../../../dist/index.js';
import { decode } from './gguf.mjs';
import { MODEL_NAMES, oddModel, tinyModel } from './models.mjs';

/** Texts that tokenizers handle differently. */
const ODD = 'Hello  the\t\n\u0000 \ud83d\ude00 \u00e9e\u0301 \ufffd <s></s> 12345 \u4f60\u597d';

/** Undamaged files by name, as parts: tiny ones of our own, or those of a folder. */
export function bases(folder) {
  if (!folder) return MODEL_NAMES.map((name) => ({ name, parts: decode(tinyModel(name)) }));
  const files = fs.readdirSync(folder).filter((name) => name.endsWith('.gguf'));
  return files.map((name) => ({ name, parts: decode(fs.readFileSync(path.join(folder, name))) }));
}

/** A file of other sizes, as parts; null for a name that is none of ours. */
export function odd(name, random) {
  return MODEL_NAMES.includes(name) ? oddModel(name, random) : null;
}

/** Gives the errors that were thrown, in order. A file may fail at its beginning, or at its first use. */
export async function use(file) {
  const errors = [];
  const attempt = async (work) => {
    try {
      return await work();
    } catch (error) {
      errors.push(error);
    }
  };
  await attempt(() => inspectModel(file, { gpu: false }));
  const runtime = await attempt(() =>
    createRuntime({
      model: file,
      gpu: false,
      threads: 1,
      contextSize: 64,
      maxSequences: 2,
      home: `${file}.home`,
    }),
  );
  if (!runtime) return errors;
  const prompt = { prompt: ODD, max_tokens: 3, temperature: 0 };
  const failed = await attempt(() => runtime.createTextCompletion(prompt));
  if (failed === undefined) await attempt(() => runtime.createEmbeddings({ input: [ODD, 'the'] }));
  await attempt(() => runtime.close());
  return errors;
}
