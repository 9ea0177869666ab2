// Prints the sources of the decoder library for binding.gyp: ours, and units of llama.cpp's `mtmd`, which reads large headers.
const fs = require('node:fs');
const path = require('node:path');

const source = path.join(__dirname, 'source', 'tools', 'mtmd');
const units = path.join(__dirname, 'build', 'units');
fs.mkdirSync(units, { recursive: true });

const alone = ['clip.cpp', 'mtmd.cpp', 'mtmd-audio.cpp', 'mtmd-image.cpp'];
const models = fs.readdirSync(path.join(source, 'models')).filter((name) => name.endsWith('.cpp'));
write(
  'models.cc',
  models.map((name) => `models/${name}`),
);

// The longest first, so that all cores end at about the same time.
for (const name of alone) process.stdout.write(`source/tools/mtmd/${name}\n`);
process.stdout.write('build/units/models.cc\n');
for (const name of fs.readdirSync(__dirname)) if (name.endsWith('.cc')) process.stdout.write(`${name}\n`);

/** A unit that is as it was keeps its time, so that make does not compile it again. */
function write(name, sources) {
  const text = sources.map((file) => `#include "${file}"\n`).join('');
  const file = path.join(units, name);
  if (!fs.existsSync(file) || fs.readFileSync(file, 'utf8') !== text) fs.writeFileSync(file, text);
}
