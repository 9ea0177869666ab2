// A 64-bit library of macOS -> the libraries it loads, the functions it takes from elsewhere, the oldest system it runs on, and the
// functions that it gives.
import fs from 'node:fs';

const MAGIC = 0xfeedfacf;
const [SYMBOLS, LOAD_LIBRARY, BUILD_VERSION] = [0x2, 0xc, 0x32];
const OLDEST = 12;
/** The library number of a symbol that the linker has bound to no particular library. */
const ANYWHERE = 0xfe;
/** Bits of a symbol's type: one for debuggers, whether it is defined in a section, and whether others see it. */
const [DEBUG, DEFINED, EXTERNAL] = [0xe0, 0x0e, 0x01];

export function readMachO(file) {
  const bytes = openMachO(file);
  const libraries = [];
  let symbols = [];
  let unresolved = [];
  const versions = [];
  for (const [command, at] of commandsOf(bytes)) {
    if (command === LOAD_LIBRARY) libraries.push(textAt(bytes, at + bytes.readUInt32LE(at + 8)));
    if (command === SYMBOLS) {
      symbols = undefinedSymbols(bytes, at);
      unresolved = undefinedSymbols(bytes, at, ANYWHERE);
    }
    if (command === BUILD_VERSION && bytes.readUInt32LE(at + 12) >>> 16 > OLDEST)
      versions.push(`macOS ${bytes.readUInt32LE(at + 12) >>> 16}`);
  }
  return { libraries, symbols, versions, unresolved };
}

/** Returns the names that others can find in the library, without C's underscore. */
export function machOExports(file) {
  const bytes = openMachO(file);
  const [[, table]] = commandsOf(bytes).filter(([command]) => command === SYMBOLS);
  return symbolsOf(bytes, table)
    .filter(({ type }) => (type & DEBUG) === 0 && (type & DEFINED) !== 0 && (type & EXTERNAL) !== 0)
    .map(({ name }) => name);
}

function openMachO(file) {
  const bytes = fs.readFileSync(file);
  if (bytes.readUInt32LE(0) !== MAGIC)
    throw new Error(`${file}: expected a library of Linux, Windows or macOS`);
  return bytes;
}

/** Returns kind and place of each command of the loader. */
function commandsOf(bytes) {
  const commands = [];
  let at = 32;
  for (let left = bytes.readUInt32LE(16); left > 0; left--) {
    commands.push([bytes.readUInt32LE(at), at]);
    at += bytes.readUInt32LE(at + 4);
  }
  return commands;
}

/** Names of the symbols that no section here defines, of one library or of all, without C's underscore. */
function undefinedSymbols(bytes, command, library = null) {
  return symbolsOf(bytes, command)
    .filter(({ type, from }) => (type & DEFINED) === 0 && (library === null || from === library))
    .map(({ name }) => name);
}

function symbolsOf(bytes, command) {
  const [table, count, names] = [8, 12, 16].map((offset) => bytes.readUInt32LE(command + offset));
  return Array.from({ length: count }, (_, i) => table + 16 * i).map((entry) => ({
    type: bytes[entry + 4],
    from: bytes[entry + 7],
    name: textAt(bytes, names + bytes.readUInt32LE(entry)).slice(1),
  }));
}

function textAt(bytes, start) {
  return bytes.toString('latin1', start, bytes.indexOf(0, start));
}
