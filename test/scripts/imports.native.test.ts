/** Imports that an addon may have: the check of `npm run prebuild`, on the addons built here. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const ADDONS = ['onpolicy', 'grammar'].map((name) =>
  path.join(ROOT, 'native', 'build', 'Release', `${name}.node`),
);
type Symbols = { js_native_api_symbols: string[]; node_api_symbols: string[] };
const load = (file: string): Promise<unknown> => import(/* @vite-ignore */ path.join(ROOT, file));
const { checkImports } = (await load('scripts/prebuild/imports.mjs')) as {
  checkImports(file: string, functions: ReadonlySet<string>): void;
};
const { default: headers } = (await load('node_modules/node-api-headers/index.js')) as {
  default: { symbols: Record<string, Symbols> };
};
const functionsOf = (version: string): Set<string> => {
  const { js_native_api_symbols, node_api_symbols } = headers.symbols[version]!;
  return new Set([...js_native_api_symbols, ...node_api_symbols]);
};
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-imports-'));
afterAll(() => fs.rmSync(work, { recursive: true, force: true }));

it.runIf(process.platform === 'linux')('Node-API 9 and the C++ library of the engine are enough', () => {
  for (const addon of ADDONS) expect(() => checkImports(addon, functionsOf('v9'))).not.toThrow();
});

it.runIf(process.platform === 'linux')('a function of a later Node-API is named', () => {
  for (const addon of ADDONS)
    expect(() => checkImports(addon, functionsOf('v1'))).toThrow(
      /needs what is not there everywhere: .*napi_/,
    );
});

it.runIf(process.platform === 'linux')('what takes no function of its host is no addon', () => {
  expect(() => checkImports('/bin/true', functionsOf('v9'))).toThrow('no function of its host');
});

it('a file of no known system is refused', () => {
  const file = path.join(work, 'text.node');
  fs.writeFileSync(file, 'This is no library at all, but long enough to be one.');
  expect(() => checkImports(file, functionsOf('v9'))).toThrow(
    'expected a library of Linux, Windows or macOS',
  );
});
