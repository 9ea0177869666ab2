import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  type Constraint,
  compileConstraint,
  type StructuredOutputs,
  type Vocabulary,
} from '../../src/structured/index.ts';
import { accepts, realVocabulary, smallVocabulary } from './vocabularies.ts';

type Case = { readonly text?: string; readonly hex?: string; readonly valid: boolean };
type Group = {
  readonly id?: string;
  readonly kind: 'json' | 'gbnf' | 'ebnf' | 'regex' | 'lark' | 'structural_tag' | 'json_object';
  readonly spec: string | Record<string, unknown> | boolean;
  readonly cases?: readonly Case[];
  readonly accept?: readonly { readonly text: string }[];
  readonly reject?: readonly { readonly text: string }[];
};
type Tally = {
  groups: number;
  right: number;
  refused: number;
  cases: number;
  rightCases: number;
  invalid: number;
  accepted: number;
};

const folder = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../../shared/data/structured');
const isHere = fs.existsSync(folder);
if (!isHere) process.stderr.write(`golden sets of constrained decoding skipped: no ${folder}\n`);

function load(name: string): Group[] {
  const raw = fs.readFileSync(path.join(folder, name));
  const text = (name.endsWith('.gz') ? gunzipSync(raw) : raw).toString('utf8');
  if (!name.includes('.jsonl')) return JSON.parse(text) as Group[];
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Group);
}

function specOf({ kind, spec }: Group): StructuredOutputs {
  if (kind === 'json_object') return { json_object: true };
  if (kind === 'gbnf' || kind === 'ebnf' || kind === 'lark') return { grammar: spec as string };
  return { [kind]: spec } as StructuredOutputs;
}

let vocabulary: Vocabulary;

/** Runs every case with the vocabulary's own split, byte by byte, and in pieces of three bytes: all must agree. */
async function run(groups: readonly Group[]): Promise<Tally> {
  const tally: Tally = { groups: 0, right: 0, refused: 0, cases: 0, rightCases: 0, invalid: 0, accepted: 0 };
  const mask = new Int32Array(Math.ceil(vocabulary.size / 32));
  const eos = vocabulary.eosTokenIds[0]!;
  const single = Array.from({ length: 256 }, (_, byte) => vocabulary.tokenize(Uint8Array.of(byte))[0]!);
  for (const group of groups) {
    const cases = group.cases ?? [
      ...group.accept!.map(({ text }) => ({ text, valid: true })),
      ...group.reject!.map(({ text }) => ({ text, valid: false })),
    ];
    tally.groups++;
    tally.cases += cases.length;
    let constraint: Constraint;
    try {
      constraint = await compileConstraint(specOf(group), vocabulary);
    } catch {
      tally.refused++;
      continue;
    }
    let wrong = 0;
    for (const { text, hex, valid } of cases as readonly Case[]) {
      const bytes = hex === undefined ? Buffer.from(text!) : Buffer.from(hex, 'hex');
      const pieces: number[] = [];
      for (let at = 0; at < bytes.length; at += 3)
        pieces.push(...vocabulary.tokenize(new Uint8Array(bytes.subarray(at, at + 3))));
      const answers = [vocabulary.tokenize(new Uint8Array(bytes)), pieces].map((tokens) =>
        accepts(constraint.createMatcher(), tokens, mask, eos),
      );
      const matcher = constraint.createMatcher();
      answers.push([...bytes].every((byte) => matcher.accept(single[byte]!)) && matcher.isComplete());
      if (new Set(answers).size !== 1)
        throw new Error(`${group.id}: the split changes the answer: ${text} ${answers}`);
      if (!valid) tally.invalid++;
      if (answers[0] && !valid) tally.accepted++;
      if (answers[0] !== valid) wrong++;
    }
    tally.rightCases += cases.length - wrong;
    if (wrong === 0) tally.right++;
  }
  return tally;
}

describe.skipIf(!isHere)('golden sets', () => {
  beforeAll(async () => {
    const real = await realVocabulary('llama-bpe');
    vocabulary = typeof real === 'string' ? smallVocabulary() : real;
  }, 60_000);

  it.each(['2020-12', '2019-09', '7', '6', '4'])(
    'JSON Schema Test Suite, draft %s: no invalid document, 82 % of the required groups right',
    async (draft) => {
      const required = load(`jsts_draft${draft}.jsonl.gz`).filter(({ id }) => !id!.includes('/optional/'));
      const tally = await run(required);
      // Sets of drafts 6 and 7 have one group that does not say its draft, and means another thing in later ones.
      expect(tally.accepted).toBeLessThanOrEqual(draft === '6' || draft === '7' ? 1 : 0);
      expect(tally.right / tally.groups).toBeGreaterThanOrEqual(0.82);
    },
    120_000,
  );

  it.each([
    ['ebnf', 0.98],
    ['regex', 1],
    ['lark', 0.97],
    ['structural_tag', 0.99],
  ])(
    'xgrammar set, %s',
    async (kind, goal) => {
      const tally = await run(load('xgrammar_verified.json.gz').filter((group) => group.kind === kind));
      expect(tally.rightCases / tally.cases).toBeGreaterThanOrEqual(goal);
    },
    120_000,
  );

  it('llama.cpp integration set: all of GBNF; JSON but for its own policies', async () => {
    const groups = load('llamacpp_integration.json');
    const grammars = await run(groups.filter(({ kind }) => kind === 'gbnf'));
    expect(grammars.right).toBe(grammars.groups);
    // Its policies: integers end after 16 digits, schemas with array keywords mean arrays, properties are closed.
    const schemas = await run(groups.filter(({ kind }) => kind === 'json'));
    expect(schemas.groups - schemas.right).toBeLessThanOrEqual(4);
  }, 60_000);

  it('refuses what must be refused', async () => {
    const groups = load('xgrammar_must_refuse.json.gz');
    let refused = 0;
    for (const group of groups)
      await compileConstraint(specOf(group), vocabulary).then(
        () => undefined,
        () => refused++,
      );
    expect(refused / groups.length).toBeGreaterThanOrEqual(0.95);
  }, 60_000);
});
