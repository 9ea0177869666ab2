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
import { missingPart } from './missing-part.ts';
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

/** The file of the loaded addon. */
export function addonFile(): string {
  return load().file;
}

/** The folder of the loaded addon, and of what was built with it. */
export function addonFolder(): string {
  return path.dirname(addonFile());
}

function load(): NonNullable<typeof loaded> {
  if (loaded) return loaded;
  requirePackage();
  const [built, answers, prebuilt] = [
    'native/build/Release/onpolicy.node',
    'native/build/Release/answers.node', // what `npm start` builds first
    `prebuilds/${process.platform}-${process.arch}/onpolicy.node`,
  ].map(packageFile) as [string, string, string];
  const file = [built, answers, prebuilt].map(onDisk).find((candidate) => fs.existsSync(candidate));
  if (file === undefined)
    throw new OnpolicyError(
      'NATIVE_UNAVAILABLE',
      `no addon for ${process.platform}-${process.arch}: looked for ${built} and ${prebuilt}; ` +
        'reinstall the package with a C++20 compiler, git and python3 on the PATH to build one',
    );
  try {
    const all = withKnownErrors(createRequire(import.meta.url)(file) as Addon);
    const addon = file === onDisk(answers) ? withoutTrainer(all, built) : all;
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

/** Lets calls of the trainer's functions fail with the command that builds it. `built`: the file that has them. */
function withoutTrainer(addon: Addon, built: string): Addon {
  return new Proxy(addon, {
    get(functions, name) {
      if (name in functions || typeof name === 'symbol') return Reflect.get(functions, name);
      throw missingPart('trainer', [built], 'build-addon.mjs');
    },
  });
}
