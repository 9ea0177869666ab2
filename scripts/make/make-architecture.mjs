// Writes random models of the engine's architectures: --name qwen35,gpt-oss,qwen3.5-0.8b (default: every tiny one) --type f32|q8_0|q4_0|q4_k|f16|bf16|mxfp4|q4_k_m
// --width 128 --out FOLDER --force.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { ARCHITECTURE_NAMES } from './architectures/table.mjs';
import { writeArchitecture } from './architectures/write.mjs';

const { values } = parseArgs({
  options: {
    name: { type: 'string' },
    type: { type: 'string', default: 'f32' },
    width: { type: 'string' },
    out: { type: 'string', default: path.join(os.tmpdir(), 'onpolicy-architectures') },
    force: { type: 'boolean' },
  },
});
fs.mkdirSync(values.out, { recursive: true });
for (const name of values.name?.split(',') ?? ARCHITECTURE_NAMES) {
  const { type, out, force } = values;
  const width = values.width && Number(values.width);
  const file = path.join(out, `${[name, type, ...(width ? [width] : [])].join('-')}.gguf`);
  if (force || !fs.existsSync(file)) await writeArchitecture(file, { name, type, width });
  process.stdout.write(`${file}\n`);
}
