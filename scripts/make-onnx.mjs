// Writes a GGUF model of llama's shape, the embedded one unless --model FILE is given, as an ONNX folder:
//   --out FOLDER (default bench/models/onpolicy-tiny-onnx), --attention plain|grouped, --no-positions, --last-rows, --external, --half,
//   --weights float32|q4|rounded (to four bits, kept as floats),
//   --gguf FILE (writes the model as a GGUF file with 32-bit weights as well)
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { convertGguf, widenGguf } from './onnx/from-gguf.mjs';

const inRepository = (name) => fileURLToPath(new URL(`../${name}`, import.meta.url));

const { values } = parseArgs({
  options: {
    model: { type: 'string', default: inRepository('models/onpolicy-tiny.gguf') },
    out: { type: 'string', default: inRepository('bench/models/onpolicy-tiny-onnx') },
    attention: { type: 'string', default: 'plain' },
    'no-positions': { type: 'boolean', default: false },
    'last-rows': { type: 'boolean', default: false },
    external: { type: 'boolean', default: false },
    weights: { type: 'string', default: 'float32' },
    gguf: { type: 'string' },
    half: { type: 'boolean', default: false },
  },
});
await convertGguf(values.model, values.out, {
  attention: values.attention,
  positions: !values['no-positions'] && values.attention === 'plain',
  lastRows: values['last-rows'],
  external: values.external,
  half: values.half,
  weights: values.weights,
});
if (values.gguf !== undefined) await widenGguf(values.model, values.gguf);
process.stdout.write(`${values.out}\n`);
process.exit(0); // reading the file has started threads of its own
