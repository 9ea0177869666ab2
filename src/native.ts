/** The only door to native code: finds and loads the addon, and types its whole surface. */
import fs from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { OnpolicyError } from './errors.ts';
import type { GrammarAddon } from './structured/addon-types.ts';

/** Everything the addon exports. */
export type Addon = {
  readonly napiVersion: number;
  /** Constrained decoding: see `src/structured/`. */
  readonly grammar: GrammarAddon;
};

let loaded: Addon | undefined;

/** Loads the addon on first use: a local build when there is one, else the prebuilt binary of this platform. */
export function loadAddon(): Addon {
  if (loaded) return loaded;
  const candidates = [
    `../native/build/Release/onpolicy.node`,
    `../prebuilds/${process.platform}-${process.arch}/onpolicy.node`,
  ].map((relative) => fileURLToPath(new URL(relative, import.meta.url)));
  const file = candidates.find((candidate) => fs.existsSync(candidate));
  if (file === undefined)
    throw new OnpolicyError(
      'NATIVE_UNAVAILABLE',
      `no addon for ${process.platform}-${process.arch}: looked for ${candidates.join(' and ')}; ` +
        'reinstall the package with a C++20 compiler, git and python3 on the PATH to build one',
    );
  try {
    loaded = createRequire(import.meta.url)(file) as Addon;
  } catch (cause) {
    throw new OnpolicyError('NATIVE_UNAVAILABLE', `the addon ${file} does not load: ${String(cause)}`, {
      cause,
    });
  }
  return loaded;
}
