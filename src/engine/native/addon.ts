/** Finds and loads the addon. */
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { packageFile, requirePackage } from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';
import type { DraftsAddon } from './drafts.ts';
import type { EngineAddon, NativeRowSampler } from './engine.ts';
import { withKnownErrors } from './known-errors.ts';
import type { MediaAddon } from './media.ts';
import { onDisk } from './on-disk.ts';
import type { SamplerAddon } from './sampler.ts';
import type { TrainerAddon } from './trainer.ts';

/** Everything the main addon exports. */
export type Addon = EngineAddon &
  SamplerAddon &
  DraftsAddon &
  TrainerAddon &
  MediaAddon & {
    /** Gives memory that was freed back to the system, where the C library would keep it. */
    returnMemory(): Promise<void>;
    /** Logical cores that are no efficiency cores; 0 where the system does not tell. `devices`: of Linux, `/sys/devices`. */
    performanceCores(devices: string): number;
    quotaCores(root: string): number;
    readonly RowSampler: new (vocabSize: number, threads: number) => NativeRowSampler;
  };

let loaded: { readonly addon: Addon; readonly file: string } | undefined;

/** Loads the addon on first use: a local build when there is one, else the prebuilt binary of this platform. */
export function loadAddon(): Addon {
  return load().addon;
}

/** The folder of the loaded addon, and so of what was built with it. */
export function addonFolder(): string {
  return path.dirname(load().file);
}

function load(): NonNullable<typeof loaded> {
  if (loaded) return loaded;
  requirePackage();
  const candidates = [
    `native/build/Release/onpolicy.node`,
    `prebuilds/${process.platform}-${process.arch}/onpolicy.node`,
  ].map(packageFile);
  const file = candidates.map(onDisk).find((candidate) => fs.existsSync(candidate));
  if (file === undefined)
    throw new OnpolicyError(
      'NATIVE_UNAVAILABLE',
      `no addon for ${process.platform}-${process.arch}: looked for ${candidates.join(' and ')}; ` +
        'reinstall the package with a C++20 compiler, git and python3 on the PATH to build one',
    );
  try {
    const addon = withKnownErrors(createRequire(import.meta.url)(file) as Addon);
    loaded = { addon, file };
    addon.onBrokenAssumption((line) =>
      process.emitWarning(line, { type: 'OnpolicyWarning', code: 'ONPOLICY_ENGINE_CHANGED' }),
    );
    process.once('exit', addon.stopThreads); // process.exit waits for no thread, and frees what a step still uses
  } catch (cause) {
    throw new OnpolicyError('NATIVE_UNAVAILABLE', `the addon ${file} does not load: ${String(cause)}`, {
      cause,
    });
  }
  return loaded;
}
