// Constrained decoding: mask and compile times over real documents, on real vocabularies, one thread; and decoding with a
// JSON Schema against the same without.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { readVocabularyHandle } from '../../dist/structured/constraint.js';
import { median, result, runParts } from '../lib/measure.mjs';
import { inTurns } from '../lib/turns.mjs';
import { measureCounts } from '../structured/counts.mjs';
import { askPeer, peerCommands } from '../structured/peers.mjs';
import { documentsOf, firstWalks, measureWalks } from '../structured/walks.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const data = path.resolve(root, '../shared/data/structured');
const golden = path.join(root, 'test', 'golden', 'structured');
const addonFile = path.join(root, 'native', 'build', 'Release', 'grammar.node');
const QUANTILES = [
  ['p50', 0.5],
  ['p99', 0.99],
];
const throughputModel = path.join(root, 'bench', 'models', 'qwen3-0.6b-q8_0.gguf');
const KIND = { json: 0, regex: 1, choice: 2, gbnf: 3, ebnf: 3, lark: 3, structural_tag: 4 };
/** Repetitions of each specification. The minimum of each step counts, as other load only adds time. */
const ROUNDS = 3;

/** Real vocabularies, from the sources that node-llama-cpp ships. */
function vocabularyFile(name) {
  const folder = path.join(root, 'bench', 'models', 'llama.cpp');
  if (!fs.existsSync(folder)) {
    fs.mkdirSync(path.dirname(folder), { recursive: true });
    const bundle = path.join(root, 'node_modules', 'node-llama-cpp', 'llama', 'gitRelease.bundle');
    execFileSync('git', ['clone', '--quiet', bundle, folder], { stdio: 'pipe' });
  }
  return path.join(folder, 'models', `ggml-vocab-${name}.gguf`);
}

function load(name, folder = data) {
  const raw = fs.readFileSync(path.join(folder, name));
  const text = (name.endsWith('.gz') ? gunzipSync(raw) : raw).toString('utf8');
  if (!name.includes('.jsonl')) return JSON.parse(text);
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line)); // prettier-ignore
}

function native(group) {
  const text = typeof group.spec === 'string' ? group.spec : JSON.stringify(group.spec);
  return {
    kind: KIND[group.kind],
    text,
    choices: [],
    anyWhitespace: true,
    disableAdditionalProperties: false,
    refuseUnknown: false,
    anyOrder: false,
    schemaUris: [],
    schemas: [],
  }; // prettier-ignore
}

/** Mask times in microseconds, one per token of every valid document, and compile times in milliseconds. */
async function measure(grammar, vocabulary, groups) {
  const { size } = grammar.vocabularyInfo(vocabulary);
  const mask = new Int32Array(Math.ceil(size / 32));
  const masks = [];
  const compiles = [];
  for (const group of groups) {
    let best;
    let compileMs = Infinity;
    const texts = group.cases
      .filter((entry) => entry.valid && entry.text !== undefined)
      .map((entry) => entry.text);
    const tokens = texts.map((text) => grammar.tokenizeBytes(vocabulary, new Uint8Array(Buffer.from(text))));
    for (let round = 0; round < ROUNDS; round++) {
      const start = performance.now();
      const compiled = await grammar.compileConstraint(native(group), vocabulary).catch(() => undefined);
      compileMs = Math.min(compileMs, performance.now() - start);
      if (!compiled) break;
      const steps = [];
      for (const ids of tokens) {
        const matcher = grammar.createMatcher(compiled.constraint);
        for (const id of ids) {
          const before = performance.now();
          grammar.fillMask(matcher, mask);
          steps.push((performance.now() - before) * 1000);
          if (!grammar.accept(matcher, id)) break;
        }
      }
      best = best ? best.map((value, index) => Math.min(value, steps[index])) : steps;
    }
    compiles.push(compileMs);
    for (const value of best ?? []) masks.push(value);
  }
  return { masks: masks.sort((a, b) => a - b), compiles: compiles.sort((a, b) => a - b) };
}

const at = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
const row = (name, unit, value, values = [value]) => ({
  name,
  unit,
  median: value,
  min: Math.min(...values),
  max: Math.max(...values),
}); // prettier-ignore

/** Mask and compile times on two vocabularies. */
async function maskRows({ grammar }) {
  if (!fs.existsSync(data)) return [];
  const results = [];
  const groups = goldenGroups();
  for (const [label, name] of [
    ['Llama 3, 128,256', 'llama-bpe'],
    ['Gemma, 262,144', 'gemma-4'],
  ]) {
    const vocabulary = await readVocabularyHandle(vocabularyFile(name));
    const { masks, compiles } = await measure(grammar, vocabulary, groups);
    results.push(row(`mask mean (${label})`, 'us', mean(masks)));
    for (const [title, share] of [
      ['p50', 0.5],
      ['p99', 0.99],
      ['p99.9', 0.999],
      ['max', 1],
    ])
      results.push(row(`mask ${title} (${label})`, 'us', at(masks, share)));
    results.push(row(`compile mean (${label})`, 'ms', mean(compiles)));
    for (const [title, share] of [
      ['p50', 0.5],
      ['p99', 0.99],
      ['max', 1],
    ])
      results.push(row(`compile ${title} (${label})`, 'ms', at(compiles, share)));
  }
  const vocabulary = await readVocabularyHandle(vocabularyFile('llama-bpe'));
  const lengths = [];
  for (let i = 0; i < 20; i++) {
    const start = performance.now();
    await grammar.compileConstraint(
      native({ kind: 'json', spec: { type: 'string', maxLength: 280 } }),
      vocabulary,
    );
    lengths.push(performance.now() - start);
  }
  results.push(result('compile maxLength 280', 'ms', lengths));
  return results;
}

/** JSON Schemas of the golden sets. */
function goldenGroups() {
  const all = ['2020-12', '2019-09', '7', '6', '4'].flatMap((draft) => load(`jsts_draft${draft}.jsonl.gz`));
  return [...all, ...load('xgrammar_verified.json.gz')].filter((group) => group.kind === 'json');
}

const WALKS = {
  first: 'first walk',
  warm: 'new constraint, vocabulary warm',
  again: 'same constraint again',
  prepared: 'first walk after the warm-up',
};

/** Walks of whole suites, from everything cold to everything warm. */
async function walkRows({ grammar }) {
  const suites = { heavy: load('heavy.jsonl', golden) };
  if (fs.existsSync(data)) suites.golden = goldenGroups();
  const results = [];
  for (const [suite, groups] of Object.entries(suites)) {
    const readVocabulary = () => readVocabularyHandle(vocabularyFile('llama-bpe'));
    const times = await measureWalks({ grammar, readVocabulary, groups, native, passes: ROUNDS });
    for (const [kind, title] of Object.entries(WALKS)) {
      results.push(row(`${suite}: mask mean, ${title}`, 'us', mean(times[kind])));
      for (const [name, share] of [...QUANTILES, ['p99.9', 0.999], ['max', 1]])
        results.push(row(`${suite}: mask ${name}, ${title}`, 'us', at(times[kind], share)));
    }
    for (const [name, share] of [...QUANTILES, ['max', 1]])
      results.push(row(`${suite}: compile ${name}`, 'ms', at(times.compiles, share)));
    results.push(row(`${suite}: warm-up mean`, 'ms', mean(times.warmUps)));
    results.push(row(`${suite}: warm-up p99`, 'ms', at(times.warmUps, 0.99)));
  }
  return results;
}

/** Texts inside of large counts. */
async function countRows({ grammar }) {
  const readVocabulary = () => readVocabularyHandle(vocabularyFile('llama-bpe'));
  const times = await measureCounts({ grammar, readVocabulary, native });
  return Object.entries(times).flatMap(([name, steps]) => [
    row(`${name}: mask mean`, 'us', mean(steps)),
    row(`${name}: mask p99`, 'us', at(steps, 0.99)),
  ]);
}

/** Seconds that a peer is asked for each suite, and that it may take for one schema. */
const PEER_LIMITS = { seconds: 45, patience: 20 };

/** First walks beside those of other engines, each compared over the documents that both take. */
async function peerRows({ grammar, log }) {
  const suites = { heavy: load('heavy.jsonl', golden) };
  if (fs.existsSync(data)) suites.golden = goldenGroups();
  const vocabularyPath = vocabularyFile('llama-bpe');
  const commands = await peerCommands({
    addon: addonFile,
    vocabularyFile: vocabularyPath,
    sources: path.join(root, 'bench', 'models', 'llama.cpp'),
  });
  const results = [];
  for (const [suite, groups] of Object.entries(suites)) {
    const vocabulary = await readVocabularyHandle(vocabularyPath);
    const tasks = groups.map((group, index) => ({
      index,
      schema: native(group).text.replaceAll('\n', ' '),
      documents: documentsOf(grammar, vocabulary, group).map((ids) => [...ids]),
    }));
    const ours = await firstWalks({ grammar, vocabulary, groups, native });
    for (const [name, command] of Object.entries(commands)) {
      const answers = await askPeer(command, tasks, PEER_LIMITS);
      results.push(...comparedRows(suite, name, { tasks, answers, ours }));
      log(`structured: ${suite}, ${name}: ${answers.size} of ${tasks.length} schemas`);
    }
  }
  return results;
}

/** Microseconds of a schema in all: its compilation, and all masks of its documents. */
const totalOf = ({ compileMs, documents }) =>
  1000 * compileMs + documents.flatMap((steps) => steps ?? []).reduce((sum, time) => sum + time, 0);

/**
 * Rows of one peer: masks of the documents that both take; what the schemas take in all whose documents both take, as a peer may do
 * at the compilation what another does at the masks; its compilations, and how many of its documents it takes.
 */
function comparedRows(suite, name, { tasks, answers, ours }) {
  const both = { ours: [], theirs: [] };
  const totals = { ours: [], theirs: [] };
  const compiles = [];
  let taken = 0;
  let asked = 0;
  for (const [index, answer] of answers) {
    asked += tasks[index].documents.length;
    if (answer) compiles.push(answer.compileMs);
    if (answer && ours[index] && answer.documents.every(Boolean)) {
      totals.ours.push(totalOf(ours[index]));
      totals.theirs.push(totalOf(answer));
    }
    for (const [i, theirs] of (answer?.documents ?? []).entries()) {
      taken += theirs ? 1 : 0;
      const own = ours[index]?.documents[i];
      if (!theirs || own?.length !== theirs.length) continue;
      both.ours.push(...own);
      both.theirs.push(...theirs);
    }
  }
  for (const list of [both.ours, both.theirs, totals.ours, totals.theirs, compiles])
    list.sort((a, b) => a - b);
  const title = `${suite}, documents that ${name} takes, too`;
  const compared = [
    ['mean', mean],
    ['p99', (values) => at(values, 0.99)],
  ].flatMap(([figure, of]) => [
    row(`${title}: its mask ${figure}`, 'us', of(both.theirs)),
    {
      ...row(`${title}: our mask ${figure}, first walk`, 'us', of(both.ours)),
      ratios: { [name]: of(both.ours) / of(both.theirs) },
    },
  ]);
  const schemas = `${suite}, schemas that ${name} takes, too: compilation and all masks`;
  return [
    ...compared,
    row(`${schemas}, its mean`, 'us', mean(totals.theirs)),
    {
      ...row(`${schemas}, our mean`, 'us', mean(totals.ours)),
      ratios: { [name]: mean(totals.ours) / mean(totals.theirs) },
    },
    row(`${suite}, ${name}: compile p99`, 'ms', at(compiles, 0.99)),
    row(`${suite}, ${name}: documents taken`, '%', (100 * taken) / Math.max(1, asked)),
  ];
}

/** Set-up of a vocabulary. */
async function vocabularyRows({ grammar }) {
  const setups = [];
  let memory = 0;
  for (let i = 0; i < 5; i++) {
    const start = performance.now();
    const made = await readVocabularyHandle(vocabularyFile('qwen2'));
    setups.push(performance.now() - start);
    memory = grammar.vocabularyInfo(made).memoryBytes / 1e6;
  }
  return [
    result('vocabulary set-up with file read (Qwen 2, 151,936)', 'ms', setups),
    row('vocabulary memory (Qwen 2, 151,936)', 'MB', memory),
  ];
}

/** Decoding with a JSON Schema against decoding without, in turns; ratios are within a round. */
async function throughputRows({ model = throughputModel, threads, rounds = 3, log }) {
  if (!fs.existsSync(model)) {
    log(`structured: throughput left out, there is no ${model}`);
    return [];
  }
  const sequences = 8;
  const names = { free: 'free', schema: 'JSON Schema', sampled: 'JSON Schema, every token sampled' };
  const rates = Object.fromEntries(Object.keys(names).map((variant) => [variant, []]));
  for (let round = 0; round < rounds; round++) {
    const common = { model, threads, sequences, outputTokens: 96 };
    const measured = await inTurns(
      Object.keys(names).map((variant) => ({
        script: 'structured/throughput.mjs',
        settings: { ...common, variant },
      })),
    );
    for (const [i, variant] of Object.keys(names).entries()) rates[variant].push(measured[i]);
  }
  return Object.entries(names).map(([variant, name]) => {
    const ratio = median(rates[variant].map((rate, round) => rate / rates.free[round]));
    const ratios = variant === 'free' ? undefined : { free: ratio };
    return result(`decode, ${sequences} sequences: ${name}`, 'tokens/s', rates[variant], ratios);
  });
}

const PARTS = {
  masks: maskRows,
  walks: walkRows,
  counts: countRows,
  peers: peerRows,
  vocabulary: vocabularyRows,
  throughput: throughputRows,
};

/** All rows of the table; `only` names some of the parts. */
export function run({ rounds = 3, threads = os.availableParallelism(), model, only, log }) {
  const grammar = createRequire(import.meta.url)(addonFile);
  return runParts('structured', PARTS, { grammar, rounds, threads, model, only, log });
}
