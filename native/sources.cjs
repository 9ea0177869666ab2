// native/*/*.cc -> build/units/<addon>/*.cc, each of which includes some sources; prints the units of an addon for binding.gyp.
// Most of the compiler's time goes into headers, which a unit reads once. A new source or folder needs no entry anywhere.
const fs = require('node:fs');
const path = require('node:path');

/** Sources of a unit at most. 1 makes a build of everything take twice as long, and one after an edit seconds. */
const MAX_SOURCES = Number(process.env.ONPOLICY_UNIT_SOURCES || 24);
/** What is in the grammar addon and in no other. */
const GRAMMAR = /^(json|regex|pushdown|mask|json-schema|notations)\/|^napi\/grammar\.cc$/;
/** Each addon has its own copy of the code that both use. */
const SHARED = /^base\//;
const HAS = {
  onpolicy: (source) => !GRAMMAR.test(source),
  grammar: (source) => GRAMMAR.test(source) || SHARED.test(source),
};
/** Kernels per instruction set are units of their own. */
const isKernel = (source) => /\/kernels-|-(?:matmul|attention)\.cc$/.test(source);

const addon = process.argv[2];
const units = path.join(__dirname, 'build', 'units', addon);
fs.mkdirSync(units, { recursive: true });

const made = unitsOf(sources()).map(write);
for (const name of fs.readdirSync(units))
  if (!made.some((unit) => unit.name === name)) fs.rmSync(path.join(units, name));
// The longest first, so that all cores end at about the same time.
for (const { name } of made.sort((a, b) => b.size - a.size))
  process.stdout.write(`build/units/${addon}/${name}\n`);

/** -> lists of the addon's sources by folder. */
function sources() {
  const entries = fs.readdirSync(__dirname, { withFileTypes: true });
  return entries
    .filter((entry) => entry.isDirectory() && !['build', 'include', 'decoder'].includes(entry.name))
    .map(({ name: folder }) => {
      const names = fs.readdirSync(path.join(__dirname, folder)).sort();
      return names
        .filter((name) => name.endsWith('.cc'))
        .map((name) => `${folder}/${name}`)
        .filter(HAS[addon]);
    });
}
/** -> lists of sources. Folders stay whole if they fit into a unit, and neighbours share one. */
function unitsOf(folders) {
  const kernels = folders.flat().filter(isKernel);
  const list = [];
  for (const folder of folders) {
    const others = folder.filter((source) => !isKernel(source));
    for (let i = 0; i < others.length; i += MAX_SOURCES) {
      const part = others.slice(i, i + MAX_SOURCES);
      if (list.length > 0 && list.at(-1).length + part.length <= MAX_SOURCES) list.at(-1).push(...part);
      else list.push(part);
    }
  }
  return [...kernels.map((source) => [source]), ...list];
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
