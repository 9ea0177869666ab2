/** Nothing -> the file of a model with random weights and the shape of a real one, written once. It answers noise, at the real speed. */
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { packageFile } from '../../common/index.ts';

/** Functions of `bench/model` in the package. It is not part of `dist`, as benchmarks of a clone use it, too. */
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
