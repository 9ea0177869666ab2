// The addon's sources -> the functions that it looks up in the engine's libraries. A platform's package -> those that its libraries lack.
import fs from 'node:fs';
import path from 'node:path';
import { exportsOf } from './exports.mjs';

const native = path.resolve(import.meta.dirname, '../../native');
/** Lists of functions, as in `#define ONPOLICY_LIBRARY_FUNCTIONS(X) X(llama_version) ...`. */
const LIST = /#define (ONPOLICY_\w*FUNCTIONS)\(X\)((?:.*\\\n)*.*\n)/g;
/** Names of C++ functions: those of GCC and clang, and those of MSVC. */
const MANGLED = /"(_Z\w+|\?\w+@@\w+@Z)"/g;
/** Functions that only the hook on Linux looks up, in the library of the CPU backend. */
const CPU = /g_thread_functions\.\w+, "(\w+)"/g;

/** Returns [name, list] of each function: the list is that of its macro, `C++` or `ggml-cpu`. */
export function wantedFunctions() {
  return sources()
    .map((file) => fs.readFileSync(file, 'utf8'))
    .flatMap((text) => [
      ...Array.from(text.matchAll(LIST)).flatMap(([, list, body]) =>
        Array.from(body.matchAll(/\bX\((\w+)/g), ([, name]) => [name, list]),
      ),
      ...Array.from(text.matchAll(MANGLED), ([, name]) => [name, 'C++']),
      ...Array.from(text.matchAll(CPU), ([, name]) => [name, 'ggml-cpu']),
    ]);
}

/** Returns those of `wanted` that no library of the folder exports. */
export function missingFunctions(folder, wanted) {
  const files = fs.readdirSync(folder).filter((file) => /\.(so|dylib|dll)$/.test(file));
  const namesIn = (pattern) =>
    files.filter((file) => pattern.test(file)).map((file) => new Set(exportsOf(path.join(folder, file))));
  const main = namesIn(/^(lib)?(ggml-base|ggml|llama)\./);
  const cpu = files.some((file) => file.endsWith('.so')) ? namesIn(/^libggml-cpu/) : [];
  const isWindows = files.some((file) => file.endsWith('.dll'));
  return wanted.filter(([name, list]) => {
    if (list === 'ggml-cpu') return !cpu.every((names) => names.has(name));
    const isOfOther = list === 'C++' && name.startsWith('?') !== isWindows;
    return !isOfOther && !main.some((names) => names.has(name));
  });
}

function sources() {
  return ['base', 'engine-assumptions'].flatMap((folder) =>
    fs
      .readdirSync(path.join(native, folder), { recursive: true })
      .filter((file) => /\.(cc|h)$/.test(file))
      .map((file) => path.join(native, folder, file)),
  );
}
