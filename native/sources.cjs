// native/**/*.cc -> build/units/<part>/*.cc, each of which includes some sources; prints the units of a part for binding.gyp.
// Most of the compiler's time goes into headers, which a unit reads once. A new source or folder needs no entry anywhere.
const fs = require('node:fs');
const path = require('node:path');

/** Sources of a unit at most. 1 makes a build of everything take twice as long, and one after an edit seconds. */
const MAX_SOURCES = Number(process.env.ONPOLICY_UNIT_SOURCES || 24);
/** An addon is linked from its entry, its part and `base`. The addon of the tests has both parts, so what it tests is what is shipped. */
const ENTRY = /-entry\.cc$/;
const GRAMMAR = /^(grammar\/|addon\/grammar\.cc$)/;
const SHARED = /^base\//;
/** The large kernels, one for each instruction set, which take a quarter of the main addon's time, and the choice among them. */
const KERNEL = /^kernels\/(?:best|\w+\/.*-(?:matmul|attention))\.cc$/;
/** The trainer, and the kernels that only it has. */
const TRAINER = /^(trainer\/|kernels\/(?!best)[\w-]+\.cc$|addon\/(?:full-)?trainer\.cc$)/;
const HAS = {
  base: (source) => SHARED.test(source),
  kernel: (source) => KERNEL.test(source),
  engine: (source) => ![SHARED, KERNEL, TRAINER, GRAMMAR].some((others) => others.test(source)),
  trainer: (source) => TRAINER.test(source),
  grammar: (source) => GRAMMAR.test(source),
};
/** Output of the build, the engine's headers, and the decoder, which has a build of its own. */
const NOT_OURS = new Set(['build', 'include', 'media/decoder']);
/** The tests' own functions; a package has none. */
const TESTS = '../test/addon';
/** A folder that begins a unit: `addon`, which is before it, takes as long as all of its own. */
const BEGINS = /^engine\/[\w-]+\.cc$/;
/** Sources that are units of their own, as they take long or are per instruction set. */
const isLarge = (source) => /\/kernels-|-(?:matmul|attention)\.cc$/.test(source);

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
  return foldersIn('')
    .map(sourcesOf)
    .map((list) => list.filter((source) => !ENTRY.test(source) && HAS[part](source)));
}

/** -> paths of all folders below a folder, each before those in it. */
function foldersIn(folder) {
  return fs
    .readdirSync(path.join(__dirname, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => path.posix.join(folder, name))
    .filter((name) => !NOT_OURS.has(name))
    .flatMap((name) => [name, ...foldersIn(name)]);
}

function sourcesOf(folder) {
  const at = path.join(__dirname, folder);
  const names = fs.existsSync(at) ? fs.readdirSync(at).sort() : [];
  return names.filter((name) => name.endsWith('.cc')).map((name) => `${folder}/${name}`);
}

/** -> lists of sources. Folders stay whole if they fit into a unit, and neighbours share one. */
function unitsOf(folders) {
  const large = folders.flat().filter(isLarge);
  const list = [];
  for (const folder of folders) {
    const others = folder.filter((source) => !isLarge(source));
    for (let i = 0; i < others.length; i += MAX_SOURCES) {
      const part = others.slice(i, i + MAX_SOURCES);
      const hasRoom = list.length > 0 && list.at(-1).length + part.length <= MAX_SOURCES;
      if (hasRoom && !BEGINS.test(part[0])) list.at(-1).push(...part);
      else list.push(part);
    }
  }
  return [...large.map((source) => [source]), ...list];
}

/** A unit that is as it was keeps its time, so that make does not compile it again. */
function write(sources) {
  const name = sources[0].replaceAll('../', '').replaceAll('/', '-');
  const text = sources.map((source) => `#include "${source}"\n`).join('');
  const file = path.join(units, name);
  if (!fs.existsSync(file) || fs.readFileSync(file, 'utf8') !== text) fs.writeFileSync(file, text);
  return {
    name,
    size: sources.reduce((size, source) => size + timeOf(source), 0),
  };
}

/** About how long the compiler takes, in bytes of other sources. */
function timeOf(source) {
  return fs.statSync(path.join(__dirname, source)).size * (source.startsWith('addon/') ? 3 : 1);
}
