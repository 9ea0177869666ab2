// A package's name and release -> whether the registry has it, and its files. Asks the registry that npm is set up with.
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
/** Packages that were unpacked, for later runs. A release never changes. */
const UNPACKED = path.join(os.tmpdir(), 'onpolicy-engine-packages');

/** Returns a field of a package's entry, such as all its versions. */
export async function view(name, field) {
  const { stdout } = await npm('view', name, field, '--json');
  return JSON.parse(stdout);
}

/** Returns all releases of a package, the oldest first. */
export async function releasesOf(name) {
  return [await view(name, 'versions')].flat().filter((version) => !version.includes('-'));
}

/** Downloads a release of a package and returns the folder with its files. */
export async function unpack(name, release) {
  const folder = path.join(UNPACKED, `${name.replace('/', '+')}-${release}`);
  if (fs.existsSync(folder)) return folder;
  fs.mkdirSync(UNPACKED, { recursive: true });
  const work = fs.mkdtempSync(path.join(UNPACKED, 'part-'));
  const { stdout } = await npm('pack', `${name}@${release}`, '--silent', '--pack-destination', work);
  await run('tar', ['-xzf', path.join(work, stdout.trim()), '-C', work]);
  fs.renameSync(path.join(work, 'package'), folder);
  fs.rmSync(work, { recursive: true });
  return folder;
}

/** Returns the folder of shared libraries of an unpacked platform package. */
export function librariesIn(folder) {
  const bins = path.join(folder, 'bins');
  const [entry] = fs.readdirSync(bins, { withFileTypes: true }).filter((one) => one.isDirectory());
  return path.join(bins, entry.name);
}

function npm(...words) {
  return run('npm', words, { shell: process.platform === 'win32', maxBuffer: 2 ** 26 }); // npm is a batch file there
}
