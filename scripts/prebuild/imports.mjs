// An addon's file -> what it imports from the system, or an error that names what the systems served do not have.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { readMachO } from './mach-o.mjs';
import { readPe } from './pe.mjs';

/** Versions of the engine's own libraries: an older system could run neither. */
const NEWEST = { GLIBC: '2.34', GLIBCXX: '3.4.30', CXXABI: '1.3.13', GCC: '12.0.0' };
/** Electron has no memory that V8 does not own. */
export const REFUSED = /^napi_create_external_(arraybuffer|buffer)$/;
const LIBRARIES = [
  /^lib(c|m|dl|pthread|gcc_s|stdc\+\+)\.so\.\d+$|^ld-linux/,
  /^(kernel32|msvcrt|node)\.(dll|exe)$/i,
  /^api-ms-win-crt-[a-z]+-l1-1-0\.dll$/, // the C library of Windows 10
  /^\/usr\/lib\/lib(System\.B|c\+\+\.1)\.dylib$/,
];

/** Throws unless every library, version and function of Node that the addon imports is on the systems served. */
export function checkImports(file, functions) {
  const { libraries, symbols, versions, unresolved = [] } = read(file);
  const faults = [
    ...libraries.filter((library) => !LIBRARIES.some((known) => known.test(library))),
    ...symbols.filter((name) => /^(napi|node)_/.test(name) && !functions.has(name)),
    ...unresolved.filter((name) => !functions.has(name)),
    ...symbols.filter((name) => REFUSED.test(name)),
    ...versions.filter((version) => !isServed(version)),
  ];
  if (!symbols.concat(unresolved).some((name) => functions.has(name))) faults.push('no function of its host');
  if (faults.length > 0) throw new Error(`${file} needs what is not there everywhere: ${faults.join(', ')}`);
}

function isServed(version) {
  const [, name, numbers] = /^([A-Z]+)_([\d.]+)$/.exec(version) ?? [];
  const newest = NEWEST[name];
  return newest !== undefined && newest.localeCompare(numbers, 'en', { numeric: true }) >= 0;
}

function read(file) {
  const magic = fs.readFileSync(file).readUInt32BE(0);
  if (magic === 0x7f454c46) return readElf(file);
  if (magic >>> 16 === 0x4d5a) return readPe(file);
  return readMachO(file);
}

function readElf(file) {
  const text = execFileSync('readelf', ['--wide', '--dynamic', '--dyn-syms', '--version-info', file], {
    encoding: 'utf8',
  });
  return {
    libraries: all(text, /\(NEEDED\).*\[(.*)\]/g),
    symbols: all(text, / UND ([^\s@]+)/g),
    versions: all(text, /Name: ((?:GLIBC|GLIBCXX|CXXABI|GCC)_\S+) /g),
  };
}

function all(text, pattern) {
  return [...text.matchAll(pattern)].map(([, found]) => found);
}
