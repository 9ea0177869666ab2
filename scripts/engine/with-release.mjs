// Runs a command with the engine's libraries of another release than the installed one, for this machine's platform:
//   node scripts/engine/with-release.mjs 3.21.1 npx vitest run --project native test/matmul
// `others` in place of a release: once with each accepted release that is not installed and that the registry has for this platform.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { releasesOf, unpack } from './registry.mjs';
import { readRelease } from './release.mjs';

const [wanted, command, ...words] = process.argv.slice(2);
const system = { darwin: 'mac', win32: 'win' }[process.platform] ?? process.platform;
const name = `${system}-${process.arch}${system === 'mac' && process.arch === 'arm64' ? '-metal' : ''}`;
for (const release of wanted === 'others' ? await otherReleases() : [wanted]) {
  console.log(`with the engine's release ${release}:`);
  const { status } = spawnSync(command, words, {
    stdio: 'inherit',
    env: { ...process.env, ...(await environmentOf(release)) },
  });
  if (status !== 0) process.exitCode = 1;
}

async function otherReleases() {
  const { accepted, installed } = readRelease();
  const there = await releasesOf(`@node-llama-cpp/${name}`);
  return Object.keys(accepted).filter((release) => release !== installed[name] && there.includes(release));
}

/** The variables with which Node finds the release's package. Test files are made anew: the engine says which tensors they have. */
async function environmentOf(release) {
  const temporary = path.join(os.tmpdir(), `onpolicy-engine-${release}`);
  const packages = path.join(temporary, 'packages');
  fs.mkdirSync(packages, { recursive: true });
  const link = path.join(packages, name);
  fs.rmSync(link, { force: true });
  fs.symlinkSync(await unpack(`@node-llama-cpp/${name}`, release), link, 'junction');
  const hook = path.join(import.meta.dirname, 'other-release.cjs');
  return {
    ONPOLICY_ENGINE_PACKAGES: packages,
    NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --require ${hook}`.trim(),
    TMPDIR: temporary,
  };
}
