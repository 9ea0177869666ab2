// Writes a model with random weights in the shape of a public one: --shape qwen3-0.6b|llama-135m, --type q8_0|f16|f32, --out FILE, --force.
import { parseArgs } from 'node:util';
import { ensureModel } from '../bench/model/make.mjs';

const { values } = parseArgs({
  options: {
    shape: { type: 'string' },
    type: { type: 'string' },
    out: { type: 'string' },
    force: { type: 'boolean' },
  },
});
process.stdout.write(`${ensureModel(values)}\n`);
