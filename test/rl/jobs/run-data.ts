/** Data, settings and saved weights of training runs in tests. */
import fs from 'node:fs';
import path from 'node:path';
import { EMBEDDED_MODEL } from '../../../src/models/named-models.ts';
import type { Datum } from '../../../src/protocol/index.ts';
import type { TrainingRun } from '../../../src/protocol/service/training-run.ts';

const tokens = [5, 9, 14, 3, 8, 21, 30];
export const inputs = tokens.slice(0, -1);
export const target_tokens = tokens.slice(1);
/** A datum of cross-entropy. */
export const lesson = (weights = inputs.map(() => 1)): Datum => ({
  model_input: { chunks: [{ tokens: inputs }] },
  loss_fn_inputs: { target_tokens, weights },
});
/** A datum of a loss with advantages, which are 0 for the first two tokens. */
export const attempt = (sign: number, logprobs: readonly number[]): Datum => ({
  model_input: { chunks: [{ tokens: inputs.slice(0, 2) }, { tokens: inputs.slice(2) }] },
  loss_fn_inputs: {
    target_tokens: { data: target_tokens },
    logprobs,
    advantages: inputs.map((_, i) => (i < 2 ? 0 : sign)),
  },
});
export const adam = { learning_rate: 1e-3 };
export const target = { model: EMBEDDED_MODEL, rank: 4, alpha: 8, seed: 7 };

/** Returns the bytes of the adapter of a saved state. `home`: the folder of the runtime. */
export function adapterOf(run: TrainingRun, name: string, home: string): Buffer {
  const at_run = path.join(home, 'models', run.modelId, 'training-runs', run.id);
  const { states } = JSON.parse(fs.readFileSync(path.join(at_run, 'run.json'), 'utf8'));
  const state = states.find((one: { name: string }) => one.name === name);
  return fs.readFileSync(path.join(at_run, state.folder, 'adapter_model.safetensors'));
}
