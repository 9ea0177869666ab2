// Prints the newest release of node-llama-cpp whose packages for every platform are in the registry. Exit code 1: it is newer than ours.
// A release's packages appear one by one, so the newest release may lack those of a platform for days.
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const manifest = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'));
const pinned = manifest.devDependencies['node-llama-cpp'];

const releases = [await view('node-llama-cpp', 'versions')]
  .flat()
  .filter((version) => !version.includes('-'));
const newer = releases.slice(releases.indexOf(pinned)).reverse();
for (const release of newer) {
  const missing = await missingPackages(release);
  if (missing.length === 0) {
    console.log(
      `node-llama-cpp ${release} is complete${release === pinned ? ' and is what package.json names' : `; package.json names ${pinned}`}`,
    );
    process.exitCode = release === pinned ? 0 : 1;
    break;
  }
  console.log(`node-llama-cpp ${release} lacks ${missing.join(', ')}`);
}

/** The platform packages of a release that are not in the registry. */
async function missingPackages(release) {
  const wanted = Object.entries(await view(`node-llama-cpp@${release}`, 'optionalDependencies'));
  const present = await Promise.all(
    wanted.map(async ([name, version]) => [await view(name, 'versions')].flat().includes(version)),
  );
  return wanted.map(([name]) => name).filter((_, i) => !present[i]);
}

async function view(name, field) {
  const options = { shell: process.platform === 'win32' }; // npm is a batch file there
  const { stdout } = await promisify(execFile)('npm', ['view', name, field, '--json'], options);
  return JSON.parse(stdout);
}
