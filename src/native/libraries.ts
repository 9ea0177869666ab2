/** What the caller asked for -> the folder of llama.cpp's shared libraries that fits this machine, opened once per process. */
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { fromNative, OnpolicyError } from '../errors.ts';
import { loadAddon } from './addon.ts';
import type { Device } from './engine.ts';
import { onDisk } from './on-disk.ts';

/** Which processor computes. `auto`: the best one whose package is installed and whose driver is there. */
export type Gpu = 'auto' | 'cuda' | 'vulkan' | 'metal' | false;

/** The llama.cpp release whose C API the addon was built against. */
const ENGINE_VERSION = '0.5.0';
const PACKAGE_VERSION = '3.22.1';

/** One build of the libraries: the packages that ship it, and the driver that must be there for it to be of use. */
type Variant = {
  readonly gpu: Exclude<Gpu, 'auto'>;
  readonly packages: readonly string[];
  readonly driver: string | null;
};

const VARIANTS: Readonly<Record<string, readonly Variant[]>> = {
  'linux-x64': [
    { gpu: 'cuda', packages: ['linux-x64-cuda', 'linux-x64-cuda-ext'], driver: 'libcuda.so.1' },
    { gpu: 'vulkan', packages: ['linux-x64-vulkan'], driver: 'libvulkan.so.1' },
    { gpu: false, packages: ['linux-x64'], driver: null },
  ],
  'linux-arm64': [{ gpu: false, packages: ['linux-arm64'], driver: null }],
  'linux-arm': [{ gpu: false, packages: ['linux-armv7l'], driver: null }],
  'linux-riscv64': [{ gpu: false, packages: ['linux-riscv64'], driver: null }],
  'darwin-arm64': [{ gpu: 'metal', packages: ['mac-arm64-metal'], driver: null }],
  'darwin-x64': [{ gpu: false, packages: ['mac-x64'], driver: null }],
  'win32-x64': [
    { gpu: 'cuda', packages: ['win-x64-cuda', 'win-x64-cuda-ext'], driver: 'nvcuda.dll' },
    { gpu: 'vulkan', packages: ['win-x64-vulkan'], driver: 'vulkan-1.dll' },
    { gpu: false, packages: ['win-x64'], driver: null },
  ],
  'win32-arm64': [{ gpu: false, packages: ['win-arm64'], driver: null }],
};

let opened: Promise<void> | undefined;

/**
 * Opens the engine's libraries. The first call of a process decides which build runs; a later call that asks for
 * another GPU kind fails with `NATIVE_UNAVAILABLE`. Every build also computes on the CPU, so `gpu: false` always works.
 */
export async function openLibraries(gpu: Gpu): Promise<void> {
  opened ??= open(gpu).catch((error: unknown) => {
    opened = undefined;
    throw error;
  });
  await opened;
  if (gpu === 'auto' || gpu === false) return;
  if (!devices().some((device) => device.kind === 'gpu'))
    throw new OnpolicyError('NATIVE_UNAVAILABLE', `gpu: expected a working ${gpu} device, found none`, {
      param: 'gpu',
    });
}

/** The devices that the opened libraries can compute on. */
export function devices(): Device[] {
  return loadAddon().devices();
}

async function open(gpu: Gpu): Promise<void> {
  const addon = loadAddon();
  const platform = `${process.platform}-${process.arch}`;
  const missing: string[] = [];
  for (const variant of VARIANTS[platform] ?? []) {
    const isWanted = gpu === 'auto' || gpu === variant.gpu || (gpu === false && variant.gpu === 'metal');
    if (!isWanted) continue;
    if (variant.driver && !addon.canOpenSystemLibrary(variant.driver)) {
      missing.push(`${variant.driver} (the ${variant.gpu} driver)`);
      continue;
    }
    const folders = await Promise.all(variant.packages.map(binariesFolder));
    if (!folders[0]) {
      missing.push(`the package @node-llama-cpp/${variant.packages[0]}`);
      continue;
    }
    const fallbacks = folders.flatMap((folder) => (folder ? fallbackBackends(folder) : []));
    await addon.openLibrary(folders[0], ENGINE_VERSION, fallbacks).catch((error: unknown) => {
      throw fromNative(error);
    });
    return;
  }
  throw new OnpolicyError(
    'NATIVE_UNAVAILABLE',
    `no engine for ${platform}${gpu === 'auto' ? '' : ` with gpu: ${String(gpu)}`}: missing ${missing.join(', ') || 'a build of it'}. ` +
      `It comes with node-llama-cpp ${PACKAGE_VERSION}; install with optional dependencies`,
  );
}

/** The folder of shared libraries inside one platform package, or null when it is not installed. */
async function binariesFolder(name: string): Promise<string | null> {
  try {
    // The platform packages are dependencies of node-llama-cpp, so they are looked up from there.
    const from = createRequire(createRequire(import.meta.url).resolve('node-llama-cpp'));
    const entry = from.resolve(`@node-llama-cpp/${name}`);
    const { getBinsDir } = (await import(pathToFileURL(entry).href)) as { getBinsDir(): { binsDir: string } };
    const { binsDir } = getBinsDir();
    const folder = fs
      .readdirSync(binsDir)
      .find((candidate) => fs.statSync(path.join(binsDir, candidate)).isDirectory());
    return folder === undefined ? null : onDisk(path.join(binsDir, folder));
  } catch {
    return null; // optional packages: absence is no error
  }
}

/** GPU backends built for older drivers, tried when the first one finds no device. */
function fallbackBackends(folder: string): string[] {
  const fallback = path.join(folder, 'fallback');
  if (!fs.existsSync(fallback)) return [];
  return fs.readdirSync(fallback).map((file) => path.join(fallback, file));
}
