// Writes a model with random weights in the shape of a public one: --shape qwen3-0.6b|llama-135m|copying-0.6b, --type q8_0|f16|f32|q4_k_m, --out FILE, --force.
import { parseArgs } from 'node:util';
import { ensureModel } from '../../bench/model/make.mjs';
import { ensureQ4Model } from '../../bench/model/quantized.mjs';

const { values } = parseArgs({
  options: {
    shape: { type: 'string' },
    type: { type: 'string' },
    out: { type: 'string' },
    force: { type: 'boolean' },
  },
});
const file = values.type === 'q4_k_m' ? await ensureQ4Model(values) : ensureModel(values);
process.stdout.write(`${file}\n`);
