// An addon's name -> what it is compiled of on any platform, and which functions it takes from the process that loads it.
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { REFUSED } from './imports.mjs';

const require = createRequire(import.meta.url);
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..');
const native = path.join(root, 'native');
const decoder = path.join(native, 'media', 'decoder');
const napi = require('node-api-headers');
const cppHeaders = path.dirname(require.resolve('node-addon-api/package.json'));
const NODE_FUNCTIONS = napi.symbols.v9.js_native_api_symbols
  .concat(napi.symbols.v9.node_api_symbols)
  .filter((name) => !REFUSED.test(name));

export const PARTS = {
  onpolicy: () => addon(['engine', 'trainer', 'kernel', 'base'], ['addon/onpolicy-entry.cc']),
  grammar: () => addon(['grammar', 'base'], ['addon/grammar-entry.cc']),
  decoder: mediaDecoder,
};
/** Further files that the tests of another platform need. */
export const TESTING = {
  testing: () => addon(['engine', 'trainer', 'kernel', 'grammar', 'base', 'testing'], []),
};

/** As in native/binding.gyp. */
function addon(parts, entries) {
  return {
    sources: [...parts.flatMap((part) => lines(native, 'sources.cjs', part)), ...entries],
    options: [
      ...lines(native, 'flags.cjs', 'cflags'),
      ...lines(native, 'flags.cjs', 'defines').map((definition) => `-D${definition}`),
      ...includes(native, '.', 'include', napi.include_dir, cppHeaders),
    ],
    functions: NODE_FUNCTIONS,
  };
}

/** As in native/media/decoder/binding.gyp. The decoder of this machine says which functions of the engine it takes. */
function mediaDecoder() {
  const built = path.join(decoder, 'build', 'Release', 'decoder.node');
  const names = execFileSync('nm', ['-D', '--undefined-only', built], { encoding: 'utf8' });
  return {
    sources: lines(decoder, 'sources.cjs').map((name) => path.join('media', 'decoder', name)),
    options: [
      ...['-std=gnu++20', '-O2', '-w', '-fvisibility=hidden'],
      ...['-DNDEBUG', '-Dggml_abort=onpolicy_media_abort'],
      ...includes(
        decoder,
        '../..',
        'source/include',
        'source/ggml/include',
        'source/tools/mtmd',
        'source/vendor',
      ),
    ],
    functions: [...names.matchAll(/ U ((?:ggml|gguf|llama)_\w+)$/gm)].map(([, name]) => name),
  };
}

function lines(folder, ...words) {
  return execFileSync(process.execPath, words, { cwd: folder, encoding: 'utf8' }).trim().split('\n');
}

function includes(folder, ...names) {
  return names.map((name) => `-I${path.resolve(folder, name)}`);
}
