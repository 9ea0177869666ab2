// A 64-bit library of Windows -> the libraries that the system loads with it, the functions it takes from them, Node and the engine, and
// those that it gives.
import fs from 'node:fs';

const PE32_PLUS = 0x20b;
const EXPORTS = 112; // where the header says their address
const IMPORTS = 120;
const DESCRIPTOR_BYTES = 20;
const SECTION_BYTES = 40;
/** The functions that an addon exports to Node. */
const EXPORTED = /^(napi_register_module|node_api_module_get_api_version)_v\d+$/;

export function readPe(file) {
  const { bytes, header, offsetOf, textAt } = openPe(file);
  const libraries = [];
  const symbols = [];
  for (let at = offsetOf(bytes.readUInt32LE(header + IMPORTS)); ; at += DESCRIPTOR_BYTES) {
    const [names, library] = [bytes.readUInt32LE(at), bytes.readUInt32LE(at + 12)];
    if (library === 0) break;
    libraries.push(textAt(library));
    for (let entry = offsetOf(names); bytes.readBigUInt64LE(entry) !== 0n; entry += 8)
      symbols.push(textAt(bytes.readUInt32LE(entry) + 2));
  }
  return { libraries, symbols: [...symbols, ...lateFunctions(bytes)], versions: [] };
}

/** Returns the names that others can find in the library. */
export function peExports(file) {
  const { bytes, header, offsetOf, textAt } = openPe(file);
  const address = bytes.readUInt32LE(header + EXPORTS);
  if (address === 0) return [];
  const table = offsetOf(address);
  const count = bytes.readUInt32LE(table + 24);
  const names = offsetOf(bytes.readUInt32LE(table + 32));
  return Array.from({ length: count }, (_, i) => textAt(bytes.readUInt32LE(names + 4 * i)));
}

function openPe(file) {
  const bytes = fs.readFileSync(file);
  const header = bytes.readUInt32LE(0x3c) + 24;
  if (bytes.readUInt16LE(header) !== PE32_PLUS)
    throw new Error(`${file}: expected a 64-bit library of Windows`);
  const sections = header + bytes.readUInt16LE(header - 4);
  const offsetOf = (address) => {
    for (let i = 0; i < bytes.readUInt16LE(header - 18); i++) {
      const [length, start, , place] = [8, 12, 16, 20].map((field) =>
        bytes.readUInt32LE(sections + SECTION_BYTES * i + field),
      );
      if (address >= start && address < start + length) return place + address - start;
    }
    throw new Error(`${file}: no section holds the address ${address}`);
  };
  const textAt = (address) => {
    const start = offsetOf(address);
    return bytes.toString('latin1', start, bytes.indexOf(0, start));
  };
  return { bytes, header, offsetOf, textAt };
}

/** Functions of Node and the engine are found by names that no table lists. */
function lateFunctions(bytes) {
  const names = bytes.toString('latin1').matchAll(/\0((?:napi|node_api|ggml|gguf|llama)_[a-z0-9_]+)\0/g);
  return [...names].map(([, name]) => name).filter((name) => !EXPORTED.test(name));
}
