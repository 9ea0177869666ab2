/** The installed bundle of llama.cpp's sources -> a folder with them, cloned once. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '..');

/** Null: there is no bundle, or no git. */
export function engineSources(): string | null {
  const folder = path.join(root, 'bench', 'models', 'llama.cpp');
  if (fs.existsSync(folder)) return folder;
  try {
    const bundle = path.join(root, 'node_modules', 'node-llama-cpp', 'llama', 'gitRelease.bundle');
    fs.mkdirSync(path.dirname(folder), { recursive: true });
    const staging = fs.mkdtempSync(`${folder}-`);
    execFileSync('git', ['clone', '--quiet', bundle, staging], { stdio: 'pipe' });
    if (!fs.existsSync(folder)) fs.renameSync(staging, folder);
    else fs.rmSync(staging, { recursive: true, force: true });
    return folder;
  } catch (error) {
    process.stderr.write(`no sources of the engine: ${String(error)}\n`);
    return null;
  }
}
