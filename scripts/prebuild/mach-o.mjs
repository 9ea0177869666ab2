// A 64-bit library of macOS -> the libraries it loads, the functions it takes from elsewhere, and the oldest system it runs on.
import fs from 'node:fs';

const MAGIC = 0xfeedfacf;
const [SYMBOLS, LOAD_LIBRARY, BUILD_VERSION] = [0x2, 0xc, 0x32];
const OLDEST = 12;
/** Of a symbol that any library or program may have: the linker has not seen who. */
const ANYWHERE = 0xfe;

export function readMachO(file) {
  const bytes = fs.readFileSync(file);
  if (bytes.readUInt32LE(0) !== MAGIC)
    throw new Error(`${file}: expected a library of Linux, Windows or macOS`);
  const libraries = [];
  let symbols = [];
  let unresolved = [];
  const versions = [];
  let at = 32;
  for (let left = bytes.readUInt32LE(16); left > 0; left--) {
    const command = bytes.readUInt32LE(at);
    if (command === LOAD_LIBRARY) libraries.push(textAt(bytes, at + bytes.readUInt32LE(at + 8)));
    if (command === SYMBOLS) {
      symbols = undefinedSymbols(bytes, at);
      unresolved = undefinedSymbols(bytes, at, ANYWHERE);
    }
    if (command === BUILD_VERSION && bytes.readUInt32LE(at + 12) >>> 16 > OLDEST)
      versions.push(`macOS ${bytes.readUInt32LE(at + 12) >>> 16}`);
    at += bytes.readUInt32LE(at + 4);
  }
  return { libraries, symbols, versions, unresolved };
}

/** Names of the symbols that no section here defines, of one library or of all, without C's underscore. */
function undefinedSymbols(bytes, command, library = null) {
  const [table, count, names] = [8, 12, 16].map((offset) => bytes.readUInt32LE(command + offset));
  const entries = Array.from({ length: count }, (_, i) => table + 16 * i);
  return entries
    .filter((entry) => (bytes[entry + 4] & 0x0e) === 0)
    .filter((entry) => library === null || bytes[entry + 7] === library)
    .map((entry) => textAt(bytes, names + bytes.readUInt32LE(entry)).slice(1));
}

function textAt(bytes, start) {
  return bytes.toString('latin1', start, bytes.indexOf(0, start));
}
