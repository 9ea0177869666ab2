// Writes a GGUF model of llama's shape, the embedded one unless --model FILE is given, as an ONNX folder:
//   --out FOLDER (default bench/models/onpolicy-tiny-onnx), --no-positions, --last-rows, --data-files N (weights beside the graph),
//   --weights float32|float16|q8|q4|q4f16|rounded (to four bits, stored as floats), --zeros and --four-bit-head (with four bits),
//   --layout own (with --attention plain|grouped, --half), or as exporters write it: torch, merged, grouped (--positions, --packed),
//   --written-out (attention of torch: not as scaled_dot_product_attention),
//   --vision llava|idefics3 (with layout torch or merged: a decoder of embeddings, with a vision encoder of random weights),
//   --states (of embeddings: last_hidden_state instead of logits, which --pooling mean|cls|last makes a vector of; layout own),
//   --gguf FILE (writes the model as a GGUF file with 32-bit weights as well, which pools in the same way)
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { meta } from '../../bench/model/gguf.mjs';
import { convertGguf, widenGguf } from './onnx/from-gguf.mjs';

const inRepository = (name) => fileURLToPath(new URL(`../../${name}`, import.meta.url));

/** By name: the number in GGUF files, and the key in those of sentence-transformers. */
const POOLINGS = {
  mean: { number: 1, key: 'pooling_mode_mean_tokens' },
  cls: { number: 2, key: 'pooling_mode_cls_token' },
  last: { number: 3, key: 'pooling_mode_lasttoken' },
};

const { values } = parseArgs({
  options: {
    model: { type: 'string', default: inRepository('models/onpolicy-tiny.gguf') },
    out: { type: 'string', default: inRepository('bench/models/onpolicy-tiny-onnx') },
    attention: { type: 'string', default: 'plain' },
    'no-positions': { type: 'boolean', default: false },
    'last-rows': { type: 'boolean', default: false },
    'data-files': { type: 'string', default: '0' },
    layout: { type: 'string', default: 'own' },
    positions: { type: 'boolean', default: false },
    packed: { type: 'boolean', default: false },
    zeros: { type: 'boolean', default: false },
    'four-bit-head': { type: 'boolean', default: false },
    'written-out': { type: 'boolean', default: false },
    weights: { type: 'string', default: 'float32' },
    gguf: { type: 'string' },
    states: { type: 'boolean', default: false },
    pooling: { type: 'string' },
    vision: { type: 'string' },
    half: { type: 'boolean', default: false },
  },
});
const isGrouped = values.layout === 'grouped' || values.attention === 'grouped';
await convertGguf(values.model, values.out, {
  layout: values.layout,
  attention: values.attention,
  positions: isGrouped ? values.positions : !values['no-positions'],
  lastRows: values['last-rows'],
  dataFiles: Number(values['data-files']),
  half: values.half,
  weights: values.weights,
  isPacked: values.packed,
  hasZeros: values.zeros,
  hasFourBitHead: values['four-bit-head'],
  isScaledFirst: !values['written-out'],
  states: values.states,
  vision: values.vision ?? null,
});
const pooling = POOLINGS[values.pooling];
if (pooling) {
  fs.mkdirSync(path.join(values.out, '1_Pooling'), { recursive: true });
  const config = Object.fromEntries(Object.values(POOLINGS).map(({ key }) => [key, key === pooling.key]));
  fs.writeFileSync(path.join(values.out, '1_Pooling', 'config.json'), `${JSON.stringify(config)}\n`);
}
if (values.gguf !== undefined)
  await widenGguf(
    values.model,
    values.gguf,
    pooling ? { 'llama.pooling_type': meta.uint32(pooling.number) } : {},
  );
process.stdout.write(`${values.out}\n`);
process.exit(0); // reading the file has started threads of its own
