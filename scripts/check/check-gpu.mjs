// Runs test/gpu on a Vulkan device in software, with the engine's Vulkan package in a scratch folder: `npm run check:gpu`.
// Words behind it go to vitest. Without Mesa's driver or the package it says so and passes. Mesa keeps compiled shaders in
// ~/.cache/mesa_shader_cache, so that the next run is faster.
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const { peerDependencies } = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'));
const name = '@node-llama-cpp/linux-x64-vulkan';
const driver = '/usr/share/vulkan/icd.d/lvp_icd.x86_64.json';
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-gpu-software-'));
try {
  const why = whyNot();
  if (why) console.log(`gpu-software: skipped, ${why}`);
  else process.exitCode = runTests();
} finally {
  fs.rmSync(scratch, { recursive: true });
}

function whyNot() {
  if (`${process.platform}-${process.arch}` !== 'linux-x64') return 'as it needs Linux x64';
  if (!fs.existsSync(driver)) return `without ${driver} (apt-get install mesa-vulkan-drivers)`;
  try {
    const package_ = `${name}@${peerDependencies[name]}`;
    execFileSync('npm', ['install', '--prefix', scratch, '--no-save', '--prefer-offline', package_], {
      stdio: 'pipe',
    });
  } catch (error) {
    return `as ${name} could not be installed: ${String(error.stderr).split('\n').at(0)}`;
  }
  try {
    const shim = path.join(root, 'test/gpu/device-shim.c');
    execFileSync('cc', ['-shared', '-fPIC', '-o', path.join(scratch, 'shim.so'), shim, '-ldl'], {
      stdio: 'pipe',
    });
  } catch (error) {
    return `as ${error.message}`;
  }
  return null;
}

function runTests() {
  const vitest = path.join(root, 'node_modules/vitest/vitest.mjs');
  const words = [vitest, 'run', '--project', 'gpu-software', ...process.argv.slice(2)];
  const env = {
    ...process.env,
    NODE_PATH: path.join(scratch, 'node_modules'),
    LD_PRELOAD: path.join(scratch, 'shim.so'),
    VK_ICD_FILENAMES: driver,
  };
  return spawnSync(process.execPath, words, { cwd: root, env, stdio: 'inherit' }).status ?? 1;
}
