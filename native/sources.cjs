// native/*/*.cc -> build/units/<part>/*.cc, each of which includes some sources; prints the units of a part for binding.gyp.
// Most of the compiler's time goes into headers, which a unit reads once. A new source or folder needs no entry anywhere.
const fs = require('node:fs');
const path = require('node:path');

/** Sources of a unit at most. 1 makes a build of everything take twice as long, and one after an edit seconds. */
const MAX_SOURCES = Number(process.env.ONPOLICY_UNIT_SOURCES || 24);
/** An addon is linked from its entry, its part and `base`. The addon of the tests has both parts, so what it tests is what is shipped. */
const ENTRY = /-entry\.cc$/;
const GRAMMAR = /^(json|regex|pushdown|mask|json-schema|notations)\/|^napi\/grammar\.cc$/;
const SHARED = /^base\//;
const HAS = {
  base: (source) => SHARED.test(source),
  engine: (source) => !GRAMMAR.test(source) && !SHARED.test(source),
  grammar: (source) => GRAMMAR.test(source),
};
/** The tests' own functions; a package has none. */
const TESTS = '../test/addon';
/** Kernels per instruction set are units of their own. */
const isKernel = (source) => /\/kernels-|-(?:matmul|attention)\.cc$/.test(source);

const part = process.argv[2];
const units = path.join(__dirname, 'build', 'units', part);
fs.mkdirSync(units, { recursive: true });

const made = unitsOf(part === 'testing' ? [sourcesOf(TESTS)] : sources()).map(write);
for (const name of fs.readdirSync(units))
  if (!made.some((unit) => unit.name === name)) fs.rmSync(path.join(units, name));
// The longest first, so that all cores end at about the same time.
for (const { name } of made.sort((a, b) => b.size - a.size))
  process.stdout.write(`build/units/${part}/${name}\n`);

/** -> lists of the part's sources by folder. */
function sources() {
  const entries = fs.readdirSync(__dirname, { withFileTypes: true });
  return entries
    .filter((entry) => entry.isDirectory() && !['build', 'include', 'decoder'].includes(entry.name))
    .map(({ name }) => sourcesOf(name).filter((source) => !ENTRY.test(source) && HAS[part](source)));
}

function sourcesOf(folder) {
  const at = path.join(__dirname, folder);
  const names = fs.existsSync(at) ? fs.readdirSync(at).sort() : [];
  return names.filter((name) => name.endsWith('.cc')).map((name) => `${folder}/${name}`);
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
  const name = sources[0].replaceAll('../', '').replaceAll('/', '-');
  const text = sources.map((source) => `#include "${source}"\n`).join('');
  const file = path.join(units, name);
  if (!fs.existsSync(file) || fs.readFileSync(file, 'utf8') !== text) fs.writeFileSync(file, text);
  return {
    name,
    size: sources.reduce((size, source) => size + fs.statSync(path.join(__dirname, source)).size, 0),
  };
}
