// native/*/*.cc -> build/units/*.cc, each of which includes a few sources of one folder; prints the units for binding.gyp.
// Most of the compiler's time goes into headers, which a unit reads once. A new source or folder needs no entry anywhere.
const fs = require('node:fs');
const path = require('node:path');

/** Sources of a unit at most. 1 makes a build of everything take twice as long, and one after an edit seconds. */
const MAX_SOURCES = Number(process.env.ONPOLICY_UNIT_SOURCES || 24);
/** Kernels per instruction set are units of their own. */
const isKernel = (source) => /\/kernels-|-product\.cc$/.test(source);

const units = path.join(__dirname, 'build', 'units');
fs.mkdirSync(units, { recursive: true });

const made = folders().flatMap(unitsOf).map(write);
for (const name of fs.readdirSync(units))
  if (!made.some((unit) => unit.name === name)) fs.rmSync(path.join(units, name));
// The longest first, so that all cores end at about the same time.
for (const { name } of made.sort((a, b) => b.size - a.size)) process.stdout.write(`build/units/${name}\n`);

function folders() {
  const entries = fs.readdirSync(__dirname, { withFileTypes: true });
  return entries
    .filter((entry) => entry.isDirectory() && !['build', 'include', 'decoder'].includes(entry.name))
    .map(({ name }) => name);
}

/** -> lists of sources, of about the same number each. */
function unitsOf(folder) {
  const names = fs.readdirSync(path.join(__dirname, folder)).sort();
  const sources = names.filter((name) => name.endsWith('.cc')).map((name) => `${folder}/${name}`);
  const kernels = sources.filter(isKernel);
  const others = sources.filter((source) => !isKernel(source));
  const count = Math.ceil(others.length / MAX_SOURCES);
  const part = (i) =>
    others.slice(Math.round((i * others.length) / count), Math.round(((i + 1) * others.length) / count));
  return [...kernels.map((source) => [source]), ...Array.from({ length: count }, (_, i) => part(i))];
}

/** A unit that is as it was keeps its time, so that make does not compile it again. */
function write(sources) {
  const name = sources[0].replace('/', '-');
  const text = sources.map((source) => `#include "${source}"\n`).join('');
  const file = path.join(units, name);
  if (!fs.existsSync(file) || fs.readFileSync(file, 'utf8') !== text) fs.writeFileSync(file, text);
  return {
    name,
    size: sources.reduce((size, source) => size + fs.statSync(path.join(__dirname, source)).size, 0),
  };
}
