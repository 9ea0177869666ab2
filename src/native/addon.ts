/** Finds and loads the addon. */
import fs from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { OnpolicyError } from '../errors.ts';
import type { DraftsAddon } from './drafts.ts';
import type { EngineAddon, NativeRowSampler } from './engine.ts';
import type { GrammarAddon } from './grammar.ts';
import type { MediaAddon } from './media.ts';
import { onDisk } from './on-disk.ts';
import type { SamplerAddon } from './sampler.ts';
import type { TrainerAddon } from './trainer.ts';

/** Everything the addon exports. */
export type Addon = EngineAddon &
  SamplerAddon &
  DraftsAddon &
  TrainerAddon &
  MediaAddon & {
    readonly napiVersion: number;
    /** Gives memory that was freed back to the system, where the C library would keep it. */
    returnMemory(): Promise<void>;
    readonly RowSampler: new (vocabSize: number, threads: number) => NativeRowSampler;
    /** Constrained decoding: see `src/structured/`. */
    readonly grammar: GrammarAddon;
  };

let loaded: Addon | undefined;

/** Loads the addon on first use: a local build when there is one, else the prebuilt binary of this platform. */
export function loadAddon(): Addon {
  if (loaded) return loaded;
  const candidates = [
    `../../native/build/Release/onpolicy.node`,
    `../../prebuilds/${process.platform}-${process.arch}/onpolicy.node`,
  ].map((relative) => fileURLToPath(new URL(relative, import.meta.url)));
  const file = candidates.map(onDisk).find((candidate) => fs.existsSync(candidate));
  if (file === undefined)
    throw new OnpolicyError(
      'NATIVE_UNAVAILABLE',
      `no addon for ${process.platform}-${process.arch}: looked for ${candidates.join(' and ')}; ` +
        'reinstall the package with a C++20 compiler, git and python3 on the PATH to build one',
    );
  try {
    loaded = createRequire(import.meta.url)(file) as Addon;
    process.once('exit', loaded.stopThreads); // process.exit waits for no thread, and frees what a step still uses
  } catch (cause) {
    throw new OnpolicyError('NATIVE_UNAVAILABLE', `the addon ${file} does not load: ${String(cause)}`, {
      cause,
    });
  }
  return loaded;
}
