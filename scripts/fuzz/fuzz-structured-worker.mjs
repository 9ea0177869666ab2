// The worker of fuzz-structured.mjs: a case number -> its findings.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { readVocabularyHandle } from '../../dist/structured/constraint.js';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const grammar = createRequire(import.meta.url)(path.join(root, 'native/build/Release/testing.node'));
const KIND = { json: 0, json_object: 0, regex: 1, choice: 2, gbnf: 3, ebnf: 3, lark: 3, structural_tag: 4 };
const STEP_LIMIT_MS = 20;
const [firstSeed, seconds, workDivisor] = process.argv.slice(2).map(Number);
grammar.divideWork(workDivisor);

/** Whole numbers below a bound, from a seed. */
function randomSource(seed) {
  let state = seed | 0;
  return (bound) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound;
  };
}

function goldenSpecs() {
  const folder = path.resolve(root, '../shared/data/structured');
  if (!fs.existsSync(folder)) return [];
  return fs.readdirSync(folder).flatMap((name) => {
    const raw = fs.readFileSync(path.join(folder, name));
    const text = (name.endsWith('.gz') ? gunzipSync(raw) : raw).toString('utf8');
    const groups = name.includes('.jsonl')
      ? text.split('\n').filter(Boolean).map(JSON.parse)
      : JSON.parse(text);
    return groups.map(({ kind, spec }) => ({
      kind: KIND[kind],
      text: typeof spec === 'string' ? spec : JSON.stringify(spec),
    }));
  });
}

const pick = (random, list) => list[random(list.length)];
const ATOMS = [
  'a',
  '[a-z]',
  '[^"x]',
  '.',
  '\\d',
  '\\w',
  '\\p{L}',
  'é',
  '中',
  ' ',
  '\\s',
  '"',
  '[0-9a-f]',
  '(?:)',
  '\\u0041',
  '\\b',
  '(?:;|$)',
];
const REPEATS = ['', '', '', '*', '+', '?', '{2,5}', '{0,280}', '{3,}', '*?'];

function regex(random, depth) {
  const parts = Array.from({ length: 1 + random(4) }, () => {
    const inner = depth > 0 && random(3) === 0 ? `(${regex(random, depth - 1)})` : pick(random, ATOMS);
    return inner + pick(random, REPEATS);
  });
  return depth > 0 && random(4) === 0 ? `${parts.join('')}|${regex(random, depth - 1)}` : parts.join('');
}

function schema(random, depth) {
  const inner = () =>
    depth > 0 ? schema(random, depth - 1) : pick(random, [true, { type: 'integer' }, { type: 'string' }]);
  const keys = ['a', 'b', 'name', 'é"', 'foo'];
  const parts = {
    string: () => ({
      type: 'string',
      maxLength: random(40),
      ...(random(2) ? { pattern: regex(random, 1) } : {}),
    }),
    format: () => ({
      format: pick(random, ['date-time', 'email', 'uuid', 'ipv6', 'uri', 'hostname']),
      type: 'string',
    }),
    number: () => ({ type: 'number', minimum: -random(1000), maximum: random(100000) / 8 }),
    integer: () => ({ type: 'integer', multipleOf: 1 + random(40) }),
    array: () => ({ type: 'array', items: inner(), minItems: random(3), uniqueItems: random(2) === 0 }),
    object: () => ({
      type: 'object',
      properties: Object.fromEntries(keys.filter(() => random(2)).map((key) => [key, inner()])),
      required: keys.filter(() => random(4) === 0),
      ...pick(random, [
        {},
        { additionalProperties: false },
        { additionalProperties: inner() },
        { maxProperties: 3 },
      ]),
      ...pick(random, [{}, {}, { 'x-property-order': 'any' }, { patternProperties: { '^f': inner() } }]),
    }),
    combined: () => ({ [pick(random, ['anyOf', 'oneOf', 'allOf'])]: [inner(), inner()] }),
    negated: () => ({ not: inner() }),
    chosen: () => ({ enum: [1, 'a', null, 'abc', [1], { a: 1 }].filter(() => random(2)).concat(['z']) }),
    conditional: () => Object.fromEntries(['if', 'then', 'else'].map((key) => [key, inner()])),
  };
  return pick(random, Object.values(parts))();
}

function rules(random, colon) {
  const names = colon === '::=' ? ['root', 'x', 'y'] : ['start', 'x', 'y'];
  const term = () =>
    pick(random, [
      '"a"',
      '"bc"',
      '"\\n"',
      '"("',
      '")"',
      colon === '::=' ? '[a-z]' : '/[a-z]+/',
      ...names.slice(1),
    ]);
  const line = () =>
    Array.from({ length: 1 + random(4) }, () => term() + pick(random, ['', '', '*', '+', '?'])).join(' ');
  return names.map((name) => `${name}${colon} ${line()} | "${name}" ${line()} | "z"`).join('\n');
}

function tags(random) {
  const content = () =>
    pick(random, [
      { type: 'any_text' },
      { type: 'regex', pattern: regex(random, 1) },
      { type: 'json_schema', json_schema: schema(random, 1) },
      { type: 'const_string', value: 'done' },
    ]);
  const tag = (name) => ({ type: 'tag', begin: `<${name}>`, content: content(), end: `</${name}>` });
  const format = pick(random, [
    () => ({ type: 'triggered_tags', triggers: ['<'], tags: [tag('f'), tag('fg')] }),
    () => ({ type: 'sequence', elements: [content(), tag('a'), content()] }),
    () => ({ type: 'tags_with_separator', tags: [tag('a'), tag('b')], separator: ',', at_least_one: true }),
    () => tag('think'),
  ])();
  return JSON.stringify({ type: 'structural_tag', format });
}

const golden = goldenSpecs();

/** Some bytes replaced, removed, doubled or taken from elsewhere. */
function damage(random, text) {
  let result = text;
  for (let i = random(4); i >= 0; i--) {
    const at = random(result.length + 1);
    const length = random(8);
    const other = random(result.length + 1);
    const piece = pick(random, [
      '',
      String.fromCharCode(random(0x250)),
      result.slice(other, other + length),
      '{9999}',
      '\\',
    ]);
    result = result.slice(0, at) + piece + result.slice(at + (random(2) ? length : 0));
  }
  return result;
}

function makeSpec(random) {
  switch (random(8)) {
    case 0:
      return { kind: 1, text: regex(random, 3) };
    case 1:
    case 2:
      return { kind: 0, text: JSON.stringify(schema(random, 3)) };
    case 3:
      return { kind: 3, text: rules(random, pick(random, [' ::=', ':'])) };
    case 4:
      return { kind: 4, text: tags(random) };
    case 5:
      return {
        kind: random(5),
        text: Array.from({ length: random(60) }, () => String.fromCharCode(random(256))).join(''),
      };
    default: {
      if (golden.length === 0) return { kind: 0, text: JSON.stringify(schema(random, 2)) };
      const { kind, text } = pick(random, golden);
      return { kind, text: random(3) === 0 ? text : damage(random, text) };
    }
  }
}

const vocabularyFile = path.join(root, 'bench/models/llama.cpp/models/ggml-vocab-llama-bpe.gguf');
const vocabulary = await readVocabularyHandle(vocabularyFile, grammar);
const { size, eosTokenIds } = grammar.vocabularyInfo(vocabulary);
const single = Array.from(
  { length: 256 },
  (_, byte) => grammar.tokenizeBytes(vocabulary, Uint8Array.of(byte))[0],
);
const mask = new Int32Array(Math.ceil(size / 32));
const totals = { cases: 0, steps: 0, forgiven: 0, worst: 0, cpuSeconds: 0 };
const isAllowed = (token) => ((mask[token >> 5] >>> (token & 31)) & 1) === 1;
const cpuMs = (since) => {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1000;
};

/** The time that a token, and the forced text and the mask after it, take; without a token, those at the beginning. */
function timedStep(matcher, token) {
  const start = process.cpuUsage();
  const isTaken = token === undefined || grammar.accept(matcher, token);
  grammar.forcedTokens(matcher);
  grammar.fillMask(matcher, mask);
  return { isTaken, took: cpuMs(start) };
}

/** Repeats a step on a fresh constraint and vocabulary. A step that other load slowed is not slow twice. */
async function isSlowAgain(spec, tokens) {
  for (let round = 0; round < 3; round++) {
    const { constraint } = await grammar.compileConstraint(
      spec,
      await readVocabularyHandle(vocabularyFile, grammar),
    );
    const matcher = grammar.createMatcher(constraint);
    let last = 0;
    for (const token of [undefined, ...tokens]) last = timedStep(matcher, token).took;
    if (last <= STEP_LIMIT_MS) return false;
  }
  return true;
}

/** Specifications that name tokens. A named token is allowed whatever its bytes. */
const NAMES_TOKENS = /<\[|token/i;

/** Compares mask bits with feeding the bytes of the token one at a time. */
function checkTokens(matcher, tokens) {
  for (const token of tokens) {
    const bytes = grammar.tokenBytes(vocabulary, token);
    // Special tokens have no text, and a format may name them.
    if (token >= 128000 || eosTokenIds.includes(token) || bytes.length === 0) continue;
    const probe = grammar.cloneMatcher(matcher);
    const isViable = bytes.every((byte) => grammar.accept(probe, single[byte]));
    if (isViable === isAllowed(token)) continue;
    if (!isViable || !grammar.isMaskCut(matcher))
      return `token ${token}: mask says ${isAllowed(token)}, bytes say ${isViable}`;
    totals.forgiven++;
    break;
  }
  return undefined;
}

async function runCase(seed) {
  const random = randomSource(seed);
  const spec = {
    ...makeSpec(random),
    choices: ['yes', 'no'],
    anyWhitespace: random(2) === 0,
    disableAdditionalProperties: random(4) === 0,
    refuseUnknown: false,
    anyOrder: random(8) === 0,
    schemaUris: [],
    schemas: [],
  };
  const compiled = await grammar.compileConstraint(spec, vocabulary).catch(() => undefined);
  if (!compiled) return;
  totals.cases++;
  const matcher = grammar.createMatcher(compiled.constraint);
  const tokens = [];
  let token;
  for (let step = 0; step < 60; step++) {
    const { isTaken, took } = timedStep(matcher, token);
    if (!isTaken) {
      process.send({
        failure: `step ${step}: token ${token} is allowed and refused: ${JSON.stringify(spec).slice(0, 600)}`,
      });
      return;
    }
    if (token !== undefined) tokens.push(token);
    totals.steps++;
    if (took > STEP_LIMIT_MS && (await isSlowAgain(spec, tokens))) {
      totals.worst = Math.max(totals.worst, took);
      process.send({
        failure: `step ${step} takes ${took.toFixed(1)} ms: ${JSON.stringify(spec).slice(0, 600)}`,
      });
      return;
    } else if (took <= STEP_LIMIT_MS) totals.worst = Math.max(totals.worst, took);
    if (eosTokenIds.includes(token)) return;
    const allowed = [];
    for (let i = random(64); i < mask.length; i += 1 + random(64))
      for (let word = mask[i]; word !== 0; word &= word - 1)
        allowed.push(i * 32 + 31 - Math.clz32(word & -word));
    if (allowed.length === 0)
      for (let i = 0; i < mask.length; i++)
        for (let word = mask[i]; word !== 0; word &= word - 1)
          allowed.push(i * 32 + 31 - Math.clz32(word & -word));
    if (allowed.length === 0) {
      if (!grammar.isComplete(matcher))
        process.send({ failure: `dead end at step ${step}: ${JSON.stringify(spec).slice(0, 600)}` });
      return;
    }
    token = pick(random, allowed);
    // Every other case is only timed: probes fill caches that the next steps would hit.
    if (seed % 2 === 1 || NAMES_TOKENS.test(spec.text)) continue;
    const probes = Array.from({ length: 12 }, () => random(size)).concat(
      Array.from({ length: 6 }, () => pick(random, allowed)),
    );
    const difference = checkTokens(matcher, probes);
    if (difference)
      process.send({ failure: `step ${step}: ${difference}: ${JSON.stringify(spec).slice(0, 600)}` });
  }
}

for (let seed = firstSeed; totals.cpuSeconds < seconds; seed++) {
  process.send({ begins: seed });
  await runCase(seed);
  totals.cpuSeconds = cpuMs() / 1000;
  if (seed % 20 === 0) process.send({ totals });
}
process.send({ totals }, () => process.exit(0));
