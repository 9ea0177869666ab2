// The addons, built with sanitizers -> tests with them. A report is printed and fails the check. The builds are in .sanitize/, so the ordinary
// addons stay as they are. Node and the engine's libraries are not instrumented.
//   address: AddressSanitizer and UndefinedBehaviorSanitizer. thread: ThreadSanitizer, over what runs at once.
//   npm run check:sanitize                                   the short form of .ci/run: address, the grammar engine, constraints
//   ONPOLICY_SANITIZE=all npm run check:sanitize             both, all addons, all tests of TESTS
//   ONPOLICY_SANITIZE=thread npm run check:sanitize -- FILES one of them; vitest takes words behind `--`
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..');
const home = path.join(root, '.sanitize');
/** Files and folders that are neither copied into a tree nor linked there. */
const LEFT_OUT = new Set(['node_modules', '.git', '.sanitize', path.join('native', 'build')]);
const ADDONS = ['onpolicy', 'grammar', 'testing'];
/**
 * Reports that ThreadSanitizer leaves out, by a library or function in a stack: atomics order what threads do there, and it does not know those
 * of code that is not instrumented.
 */
const SUPPRESSED = ['libggml', 'libllama', 'libmtmd', 'libgomp', 'node::', 'v8::', 'uv_'].flatMap((name) =>
  ['race', 'mutex', 'thread', 'signal'].map((kind) => `${kind}:${name}`),
);
const KINDS = {
  address: {
    sanitizers: 'address,undefined',
    library: 'libasan.so',
    options: (log) => ({
      ASAN_OPTIONS: `detect_leaks=0:detect_odr_violation=0:verify_asan_link_order=0:${log}`,
      UBSAN_OPTIONS: `print_stacktrace=1:${log}`,
    }),
  },
  thread: {
    sanitizers: 'thread',
    library: 'libtsan.so',
    options: (log) => ({
      TSAN_OPTIONS: `suppressions=${suppressions()}:ignore_noninstrumented_modules=1:${log}`,
    }),
  },
};
const tests = (folder, ...names) => names.map((name) => `test/${folder}/${name}.native`);
const CONSTRAINTS = tests(
  'structured',
  ...['matcher', 'references', 'repeated-keys', 'many-keys', 'tag-styles', 'escaped-text', 'warm-up'],
  ...['choices', 'abort'],
);
const AT_ONCE = tests('runtime', 'at-once');
/** Names of test files by what is asked for. Those of a folder are all in it. */
const TESTS = {
  short: { address: CONSTRAINTS },
  all: {
    address: [
      ...['test/engine', 'test/sampling', 'test/structured', 'test/matmul', 'test/attention'],
      ...['test/models/media', 'test/models/gguf', 'test/models/prompt-files', 'test/rl/'],
      ...tests('answer/drafts', 'draft-model', 'draft-head', 'eagle', 'assistant', 'speculation'),
      ...tests('answer', 'kv-transfer'),
      ...AT_ONCE,
    ],
    thread: [
      ...AT_ONCE,
      ...tests('engine', 'engine', 'run-ahead', 'threads'),
      ...tests('sampling', 'streams'),
      ...tests('structured', 'abort', 'warm-up', 'shared-masks'),
      ...tests('answer', 'overload'),
      ...tests('answer/drafts', 'speculation', 'draft-model'),
      ...tests('rl', 'threads', 'trainer'),
      ...tests('models', 'residency', 'request-adapters'),
    ],
  },
};

const asked = process.env.ONPOLICY_SANITIZE ?? 'short';
const words = process.argv.slice(2);
if (process.platform !== 'linux' || spawnSync('g++', ['--version']).error) {
  process.stdout.write('skipped: the sanitizers need Linux and g++\n');
} else if (asked in KINDS) {
  check(asked, words.length > 0 ? words : TESTS.all[asked], true);
} else if (asked in TESTS) {
  for (const [kind, files] of Object.entries(TESTS[asked])) check(kind, files, asked === 'all');
} else {
  throw new Error(
    `ONPOLICY_SANITIZE: expected ${[...Object.keys(TESTS), ...Object.keys(KINDS)].join(', ')}, not ${asked}`,
  );
}

function check(kind, files, isWhole) {
  const known = fs.readdirSync(path.join(root, 'test'), { recursive: true }).map((name) => `test/${name}`);
  for (const name of files)
    if (!known.some((file) => file.includes(name) && file.endsWith('.test.ts')))
      throw new Error(`${name}: no test file has this in its name`);
  const tree = path.join(home, kind);
  const addons = isWhole ? ADDONS : ['grammar'];
  copy(tree, addons);
  const env = {
    ...process.env,
    ONPOLICY_SANITIZERS: KINDS[kind].sanitizers,
    // Threads of the engine call the large kernels: ThreadSanitizer does not see what orders them.
    ...(isWhole && kind === 'address' ? { ONPOLICY_SANITIZED_KERNELS: '1' } : {}),
  };
  build(tree, env, addons);
  report(kind, tree, env, files, isWhole);
}

/** Copies the package with times as they are, so that only what has changed is compiled again, and the ordinary addons beside those to build. */
function copy(tree, addons) {
  for (const name of fs.readdirSync(root).filter((each) => !LEFT_OUT.has(each))) {
    for (const file of name === 'native' ? copiedOf(tree, name) : [name])
      fs.rmSync(path.join(tree, file), { recursive: true, force: true });
    fs.cpSync(path.join(root, name), path.join(tree, name), {
      recursive: true,
      preserveTimestamps: true,
      filter: (file) => !LEFT_OUT.has(path.relative(root, file)) && path.basename(file) !== 'node_modules',
    });
  }
  link(path.join(root, 'node_modules'), path.join(tree, 'node_modules'));
  link(path.join(root, '..', 'shared'), path.join(home, 'shared'));
  const built = path.join('native', 'build');
  fs.mkdirSync(path.join(tree, built, 'Release'), { recursive: true });
  for (const name of ADDONS) {
    const ordinary = addons.includes(name) ? [] : [path.join('Release', `${name}.node`)];
    for (const file of [`${name}.sha256`, ...ordinary])
      fs.copyFileSync(path.join(root, built, file), path.join(tree, built, file));
  }
}

/** Returns what an earlier run has copied into a folder: all but its builds. */
function copiedOf(tree, folder) {
  const copied = path.join(tree, folder);
  const names = fs.existsSync(copied) ? fs.readdirSync(copied) : [];
  return names.map((name) => path.join(folder, name)).filter((file) => !LEFT_OUT.has(file));
}

function link(target, file) {
  if (fs.existsSync(target) && !fs.existsSync(file)) fs.symlinkSync(target, file);
}

function build(tree, env, addons) {
  const gyp = path.join(root, 'node_modules', 'node-gyp', 'bin', 'node-gyp.js');
  const prefix = path.dirname(path.dirname(fs.realpathSync(process.execPath)));
  const headers = fs.existsSync(path.join(prefix, 'include', 'node', 'node_api.h'))
    ? [`--nodedir=${prefix}`]
    : [];
  const jobs = { JOBS: String(os.availableParallelism()) };
  execFileSync(process.execPath, [gyp, 'configure', 'build', ...addons, '--loglevel=warn', ...headers], {
    cwd: path.join(tree, 'native'),
    env: { ...env, ...jobs },
    stdio: ['ignore', 2, 2],
  });
}

function suppressions() {
  const file = path.join(home, 'suppressions');
  fs.writeFileSync(file, SUPPRESSED.map((line) => `${line}\n`).join(''));
  return file;
}

function report(kind, tree, env, files, isWhole) {
  const reports = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-sanitize-'));
  const { library, options } = KINDS[kind];
  const libraries = [library, 'libstdc++.so.6'].map((name) =>
    execFileSync('g++', [`-print-file-name=${name}`], { encoding: 'utf8' }).trim(),
  );
  const vitest = path.join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const projects = ['native', ...(isWhole ? ['slow'] : [])].flatMap((name) => ['--project', name]);
  const limits = ['--testTimeout=1200000', '--hookTimeout=1200000'];
  const { status } = spawnSync(process.execPath, [vitest, 'run', ...projects, ...limits, ...files], {
    cwd: tree,
    env: {
      ...env,
      LD_PRELOAD: libraries.join(':'),
      ...options(`log_path=${path.join(reports, 'report')}`),
    },
    stdio: ['ignore', 2, 2],
  });
  const texts = fs.readdirSync(reports).map((name) => fs.readFileSync(path.join(reports, name), 'utf8'));
  fs.rmSync(reports, { recursive: true });
  for (const text of texts) process.stdout.write(`${text.slice(0, 6000)}\n`);
  process.stdout.write(`${kind}: ${texts.length} reports, tests ${status === 0 ? 'passed' : 'failed'}\n`);
  if (status !== 0 || texts.length > 0) process.exitCode = 1;
}
