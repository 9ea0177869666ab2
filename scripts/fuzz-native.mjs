// Fuzzes native code with clang's libFuzzer under ASan and UBSan: node scripts/fuzz-native.mjs [--seconds N] [--only NAME] [--input FILE]
//   constraint: any specification -> its masks are what its bytes are accepted by, token by token, without a dead end
//   json:       any bytes -> the JSON readers agree with each other
// N seconds for each. Begins with the specifications of the tests; what it finds new stays in native/build/fuzz/NAME/corpus for the next run.
// An input that fails is written to native/build/fuzz/NAME, and the exit status is 1. --input runs one such file again.
import { spawnSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const native = path.join(root, 'native');
const built = path.join(native, 'build', 'fuzz');
/** Folders below native whose sources a fuzzer is linked with. */
const FOLDERS = {
  constraint: [
    'base',
    ...fs
      .readdirSync(path.join(native, 'grammar'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => path.relative(native, path.join(entry.parentPath, entry.name))),
  ],
  json: ['base', 'grammar/json'],
};
const FLAGS = [
  '-std=c++20',
  '-O1',
  '-g',
  '-fno-omit-frame-pointer',
  '-fno-sanitize-recover=all',
  '-fsanitize=fuzzer-no-link,address,undefined',
  `-I${native}`,
];
/** Limits of one input. The work of a specification is bounded, so an input that takes this long is a finding. */
const LIMITS = ['-timeout=20', '-rss_limit_mb=3000', '-max_len=3000', '-print_final_stats=1'];
/** Kinds of specifications by the first byte of an input, and options that change nothing by the second. */
const KIND = { json: 0, regex: 1, choice: 2, grammar: 3, structural_tag: 4 };
const seeds = { constraint: specifications, json: documents };

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    only: { type: 'string' },
    input: { type: 'string' },
  },
});
const names = values.only ? [values.only] : Object.keys(seeds);
for (const name of names)
  if (!(name in seeds))
    throw new Error(`--only: expected one of ${Object.keys(seeds).join(', ')}, not ${name}`);
if (values.input && !values.only) throw new Error('--input: needs --only, the fuzzer that the file is of');
for (const name of names) fuzz(name, link(name));

/** Sources of a folder as one object file, compiled where one of them is newer. */
function compileFolder(folder) {
  const sources = fs.readdirSync(path.join(native, folder)).filter((name) => name.endsWith('.cc'));
  return compile(
    folder.replaceAll('/', '-'),
    sources.map((name) => path.join(native, folder, name)),
  );
}

function compile(name, sources) {
  const unit = path.join(built, `${name}.cc`);
  const object = path.join(built, `${name}.o`);
  const stamp = path.join(built, `${name}.sha256`);
  const text = sources.map((source) => `#include "${source}"\n`).join('');
  const hash = crypto
    .createHash('sha256')
    .update(FLAGS.join(' '))
    .update(text)
    .update(headersAndSources())
    .digest('hex');
  if (fs.existsSync(object) && fs.existsSync(stamp) && fs.readFileSync(stamp, 'utf8') === hash) return object;
  fs.mkdirSync(built, { recursive: true });
  fs.writeFileSync(unit, text);
  run('clang++', [...FLAGS, '-c', unit, '-o', object]);
  fs.writeFileSync(stamp, hash);
  return object;
}

/** The content of everything that a fuzzer may include. */
function headersAndSources() {
  const folders = [
    ...FOLDERS.constraint.map((folder) => path.join(native, folder)),
    path.join(root, 'test', 'fuzz'),
  ];
  const files = folders.flatMap((folder) => fs.readdirSync(folder).map((name) => path.join(folder, name)));
  return files
    .filter((file) => /\.(cc|h)$/.test(file))
    .sort()
    .map((file) => fs.readFileSync(file, 'utf8'))
    .join('\0');
}

function link(name) {
  const objects = FOLDERS[name].map(compileFolder);
  const object = compile(`fuzz-${name}`, [path.join(root, 'test', 'fuzz', `${name}.cc`)]);
  const program = path.join(built, name.concat('.fuzzer'));
  run('clang++', [
    '-fsanitize=fuzzer,address,undefined',
    ...objects,
    object,
    '-o',
    program,
    '-lpthread',
    '-ldl',
  ]);
  return program;
}

function fuzz(name, program) {
  if (values.input) return run(program, [...LIMITS, values.input]);
  const folder = path.join(built, name);
  const corpus = path.join(folder, 'corpus');
  fs.mkdirSync(corpus, { recursive: true });
  for (const seed of seeds[name]()) {
    const file = path.join(corpus, crypto.createHash('sha1').update(seed).digest('hex'));
    if (!fs.existsSync(file)) fs.writeFileSync(file, seed);
  }
  run(program, [...LIMITS, `-max_total_time=${values.seconds}`, `-artifact_prefix=${folder}/`, corpus]);
}

function run(command, args) {
  const { status, error } = spawnSync(command, args, { stdio: 'inherit' });
  if (error) throw error;
  if (status === 0) return;
  process.stderr.write(`${path.basename(command)} failed with status ${status}\n`);
  process.exit(1);
}

/** Short specifications that tests give in their sources, and the golden ones. */
function specifications() {
  const folder = path.join(root, 'test', 'structured');
  const found = [];
  const add = (kind, text) => {
    if (text.length < 2500)
      found.push(Buffer.concat([Buffer.from([KIND[kind], 1, 1, 1]), Buffer.from(text)]));
  };
  for (const name of fs.readdirSync(folder)) {
    const source = fs.readFileSync(path.join(folder, name), 'utf8');
    for (const [, kind, text] of source.matchAll(/\b(regex|grammar): '((?:[^'\\\n]|\\.)+)'/g))
      add(kind, evaluated(text));
    for (const [, text] of source.matchAll(/^\s*(\{ ?\w.*\}),?$/gm)) {
      const schema = schemaOf(text);
      if (schema) add('json', JSON.stringify(schema));
    }
  }
  const golden = fs.readFileSync(path.join(root, 'test', 'golden', 'structured', 'heavy.jsonl'), 'utf8');
  for (const line of golden.trim().split('\n')) {
    const { kind, spec } = JSON.parse(line);
    if (kind in KIND) add(kind, typeof spec === 'string' ? spec : JSON.stringify(spec));
  }
  for (const keyword of [
    'uniqueItems',
    'contains',
    'patternProperties',
    'dependentRequired',
    'oneOf',
    'not',
    'unevaluatedProperties',
  ])
    add(
      'json',
      `{"type":["object","array"],"${keyword}":${keyword === 'uniqueItems' ? 'true' : '{"a":["b"]}'}}`,
    );
  add('choice', 'a\nab\nb');
  add(
    'structural_tag',
    '{"type":"structural_tag","format":{"type":"triggered_tags","triggers":["<a"],"tags":[{"begin":"<a>","content":{"type":"json_schema","json_schema":{"type":"integer"}},"end":"</a>"}]}}',
  );
  return found;
}

/** The text of a string in a source. */
function evaluated(text) {
  return text.replaceAll(/\\(.)/g, (_, char) => ({ n: '\n', t: '\t' })[char] ?? char);
}

/** A schema that stands on a line of a source, if it does. */
function schemaOf(text) {
  const quoted = text
    .replaceAll(/([{,]\s*)([$\w]+):/g, '$1"$2":')
    .replaceAll("'", '"')
    .replaceAll(/,(\s*[}\]])/g, '$1');
  try {
    return JSON.parse(quoted);
  } catch {
    return undefined;
  }
}

/** Documents of the golden specifications, whole and cut. */
function documents() {
  const golden = fs.readFileSync(path.join(root, 'test', 'golden', 'structured', 'heavy.jsonl'), 'utf8');
  const texts = golden
    .trim()
    .split('\n')
    .flatMap((line) => JSON.parse(line).cases.map((item) => item.text));
  const all = [
    ...texts.slice(0, 300),
    '{"a":1,"a":2,"\\u0061":[{}],"b":-0.5e+7}',
    '["\\ud83d\\ude00","\\\\",null,true]',
  ];
  return all.flatMap((text) => [Buffer.from(text), Buffer.from(text.slice(0, text.length / 2))]);
}
