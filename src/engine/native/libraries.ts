/** The requested GPU kind -> the folder of llama.cpp's shared libraries for this machine, opened once per process. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { errorAt, OnpolicyError } from '../../errors.ts';
import type { Gpu } from '../../protocol/index.ts';
import { addonFile, loadAddon } from './addon.ts';
import type { Device, EngineAddon } from './engine.ts';
import { onDisk } from './on-disk.ts';
import { refuseOtherReleases } from './other-release.ts';
import RELEASE from './release.json' with { type: 'json' };

/** Releases of the `@node-llama-cpp/*` packages with the layout that the addon is compiled for -> the version of their llama.cpp. */
const ACCEPTED: Readonly<Record<string, string>> = RELEASE.accepted;
/** Platform packages -> the release of each that this package names: the newest accepted one that is in the registry. */
const NAMED: Readonly<Record<string, string>> = { ...RELEASE.installed, ...RELEASE.onRequest };

/** Maximum bytes of one buffer. Electron's allocator ends a process that allocates 2 GiB at once. */
const LARGEST_BUFFER = process.versions['electron'] === undefined ? 0 : 2 ** 31 - 2 ** 24;

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

/** The version of the llama.cpp that this process runs. */
let opened: Promise<string> | undefined;
/** The same, known without waiting; before the libraries are opened, the version that the addon is compiled for. */
let version = ACCEPTED[RELEASE.release]!;

/**
 * Opens the engine's libraries. The first call of a process decides which build runs; a later call that asks for another GPU kind fails
 * with `NATIVE_UNAVAILABLE`, and so does one after another release of the engine was opened. Every build also computes on the CPU, so
 * `gpu: false` needs no GPU.
 */
export async function openLibraries(gpu: Gpu): Promise<void> {
  opened ??= openLibrariesOf(loadAddon(), gpu).catch((error: unknown) => {
    opened = undefined;
    throw error;
  });
  version = await opened;
  loadAddon().requireOneRelease();
  if (gpu === 'auto' || gpu === false) return;
  if (devices().some((device) => device.kind === 'gpu')) return;
  const variant = variants().find((one) => one.gpu === gpu);
  const lacks = variant ? await lacksOf(loadAddon(), variant) : [];
  const why = lacks.length === 0 ? '' : `; ${missingOf(lacks, variant!.packages)}`;
  throw errorAt('gpu', 'NATIVE_UNAVAILABLE', `expected a working ${gpu} device, found none${why}`);
}

/** Returns an identity of the computing code: the version of the opened llama.cpp, and a hash of the addon. */
export async function engineBuild(): Promise<string> {
  const addon = await fs.promises.readFile(addonFile());
  return `${await opened} ${createHash('sha256').update(addon).digest('hex')}`;
}

/** Returns true if the llama.cpp that this process runs is of this version or a newer one. */
export function isEngineSince(oldest: string): boolean {
  return version.localeCompare(oldest, 'en', { numeric: true }) >= 0;
}

/** Returns the devices that the opened libraries can compute on. */
export function devices(): Device[] {
  return loadAddon().devices();
}

/** Returns true if models may compute on a GPU. */
export function usesGpu(gpu: Gpu): boolean {
  return gpu !== false && devices().some(({ kind }) => kind === 'gpu');
}

/** Returns the free bytes of all GPUs together. */
export function freeGpuBytes(): number {
  return devices().reduce((sum, { kind, freeBytes }) => sum + (kind === 'gpu' ? freeBytes : 0), 0);
}

/** Opens the libraries for one addon, and returns their llama.cpp's version. Each addon has its own table of their functions. */
export async function openLibrariesOf(addon: EngineAddon, gpu: Gpu): Promise<string> {
  const missing: Lack[] = [];
  let install: readonly string[] | undefined;
  for (const variant of variants()) {
    const isWanted = gpu === 'auto' || gpu === variant.gpu || (gpu === false && variant.gpu === 'metal');
    if (!isWanted) continue;
    const lacks = await lacksOf(addon, variant);
    if (lacks.length > 0) {
      missing.push(...lacks);
      // Without a driver a package is useless, unless the caller asks for it.
      if (gpu === variant.gpu || !lacks.some(({ isDriver }) => isDriver)) install ??= variant.packages;
      continue;
    }
    const found = await Promise.all(variant.packages.map(findPackage));
    const { release, folder } = found[0] as Usable;
    const ofRelease = found.filter((part): part is Usable => part?.release === release);
    const backends = ofRelease.flatMap((part) => fallbackBackends(part.folder));
    const wanted = ACCEPTED[release]!;
    await addon.openLibrary(folder, wanted, backends, LARGEST_BUFFER);
    refuseOtherReleases(folder);
    // Users with an NVIDIA card expect it to be used, and its packages are too large to install by default.
    if (install?.[0]?.includes('cuda'))
      process.emitWarning(
        `an NVIDIA driver is installed, but not the package to use it: ${installLine(install)}`,
        { type: 'OnpolicyWarning', code: 'ONPOLICY_NO_CUDA_PACKAGE' },
      );
    return wanted;
  }
  throw new OnpolicyError(
    'NATIVE_UNAVAILABLE',
    `no engine for ${platform()}${gpu === 'auto' ? '' : ` with gpu: ${String(gpu)}`}: ${missingOf(missing, install)}`,
    gpu === 'auto' || gpu === false ? {} : { param: 'gpu' },
  );
}

function platform(): string {
  return `${process.platform}-${process.arch}`;
}

function variants(): readonly Variant[] {
  return VARIANTS[platform()] ?? [];
}

/** A missing driver or package, in words. */
type Lack = { readonly isDriver: boolean; readonly what: string };

/** Returns the drivers and packages that a build needs and that are missing. */
async function lacksOf(addon: EngineAddon, { gpu, driver, packages }: Variant): Promise<Lack[]> {
  const lacks: Lack[] = [];
  if (driver && !addon.canOpenSystemLibrary(driver))
    lacks.push({ isDriver: true, what: `${driver} (the ${gpu} driver)` });
  const [name] = packages as [string];
  const found = await findPackage(name);
  if (found?.folder === undefined) {
    const other = found ? ` (${found.release} is there)` : '';
    const releases = Object.keys(ACCEPTED).join(' or ');
    lacks.push({ isDriver: false, what: `the package @node-llama-cpp/${name} ${releases}${other}` });
  }
  return lacks;
}

function missingOf(lacks: readonly Lack[], install: readonly string[] | undefined): string {
  const isPackage = lacks.some(({ isDriver }) => !isDriver);
  const what = lacks.map((lack) => lack.what).join(', ') || 'a build of it';
  return `missing ${what}${install && isPackage ? `. Install it: ${installLine(install)}` : ''}`;
}

/** Returns the command that adds the packages of one build. */
function installLine(packages: readonly string[]): string {
  return `npm install ${packages.map((name) => `@node-llama-cpp/${name}@${NAMED[name]}`).join(' ')}`;
}

/** An installed platform package. `folder`: that of its shared libraries, absent if the addon does not run with its release. */
type Installed = { readonly release: string; readonly folder?: string };
type Usable = Required<Installed>;

/** Returns the installed platform package of this name, or null. */
async function findPackage(name: string): Promise<Installed | null> {
  try {
    const entry = createRequire(import.meta.url).resolve(`@node-llama-cpp/${name}`);
    const { getBinsDir } = (await import(pathToFileURL(entry).href)) as {
      getBinsDir(): { binsDir: string; packageVersion: string };
    };
    const { binsDir, packageVersion: release } = getBinsDir();
    if (!Object.hasOwn(ACCEPTED, release)) return { release };
    const [folder] = fs
      .readdirSync(binsDir, { withFileTypes: true })
      .filter((candidate) => candidate.isDirectory());
    return folder ? { release, folder: onDisk(path.join(binsDir, folder.name)) } : null;
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
