// A shared library of any system -> the names that others can find in it. Reads the file, so a library of another system will do.
import fs from 'node:fs';
import { machOExports } from '../prebuild/mach-o.mjs';
import { peExports } from '../prebuild/pe.mjs';

export function exportsOf(file) {
  const magic = fs.readFileSync(file).readUInt32BE(0);
  if (magic === 0x7f454c46) return elfExports(file);
  return magic >>> 16 === 0x4d5a ? peExports(file) : machOExports(file);
}

const DYNAMIC_SYMBOLS = 11;
/** Offsets of the fields of headers and entries, with 32 bits and with 64. */
const FORMS = {
  1: {
    word: 'readUInt32LE',
    sections: 32,
    counts: 46,
    place: 16,
    size: 20,
    link: 24,
    entry: 16,
    section: 14,
  },
  2: {
    word: 'readBigUInt64LE',
    sections: 40,
    counts: 58,
    place: 24,
    size: 32,
    link: 40,
    entry: 24,
    section: 6,
  },
};

/** Returns the names of the symbols that a section of the file defines. */
function elfExports(file) {
  const bytes = fs.readFileSync(file);
  const form = FORMS[bytes[4]];
  const wordAt = (at) => Number(bytes[form.word](at));
  const [first, length, count] = [
    wordAt(form.sections),
    bytes.readUInt16LE(form.counts),
    bytes.readUInt16LE(form.counts + 2),
  ];
  const sections = Array.from({ length: count }, (_, i) => first + i * length);
  const table = sections.find((at) => bytes.readUInt32LE(at + 4) === DYNAMIC_SYMBOLS);
  if (table === undefined) throw new Error(`${file}: expected a table of dynamic symbols`);
  const names = wordAt(sections[bytes.readUInt32LE(table + form.link)] + form.place);
  const start = wordAt(table + form.place);
  const entries = wordAt(table + form.size) / form.entry;
  return Array.from({ length: entries }, (_, i) => start + i * form.entry)
    .filter((at) => bytes.readUInt16LE(at + form.section) !== 0)
    .map((at) => {
      const name = names + bytes.readUInt32LE(at);
      return bytes.toString('latin1', name, bytes.indexOf(0, name));
    })
    .filter((name) => name !== ''); // sections have none
}
