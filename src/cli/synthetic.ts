/** Nothing -> the file of a model with random weights and a real one's shape, written once: it says noise, as fast as the real one. */
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { packageFile } from '../common/index.ts';

/** What `bench/model` of the package has. It is no part of `dist`: benchmarks of a clone use it, too. */
type Writer = {
  readonly ensureModel: (options: {
    readonly shape: string;
    readonly out: string;
    readonly vocabulary: 'embedded';
  }) => string;
};

const SHAPE = 'qwen3-0.6b';

/** Qwen3-0.6B's shape in Q8_0, 640 MB. Says on standard error that it writes the file. */
export async function syntheticModel(): Promise<string> {
  const { ensureModel } = (await import(pathToFileURL(packageFile('bench/model/make.mjs')).href)) as Writer;
  const out = path.join(os.homedir(), '.cache', 'onpolicy-synthetic', `${SHAPE}-q8_0.gguf`);
  return ensureModel({ shape: SHAPE, out, vocabulary: 'embedded' });
}
