/** The grammar engine and the main addon, which share nothing but the handles of matchers. */
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { grammarAddon, type Handle, loadAddon, ROW_STATUS } from '../../../src/engine/native/index.ts';
import {
  type Constraint,
  compileConstraint,
  constraintHandle,
  createVocabulary,
} from '../../../src/structured/index.ts';
import { nativeSampler } from '../../fakes/sampling.ts';

const LETTERS = ['a', 'b', 'c', ''];
const SIZE = LETTERS.length;
const END = 3;
const vocabulary = createVocabulary({ tokens: LETTERS, eosTokenIds: [END] });
const rows = new (loadAddon().RowSampler)(SIZE, 2);

const matcherOf = (constraint: Constraint): Handle =>
  grammarAddon().createMatcher(constraintHandle(constraint));
const sample = (matcher: Handle) =>
  rows.sample({
    logits: Float32Array.of(0, 1, 2, 3),
    sampleRows: Int32Array.of(0),
    samplers: [nativeSampler({ vocabSize: SIZE, temperature: 0 }, 0n)],
    matchers: [matcher],
    scoreRows: new Int32Array(),
  });

describe('a matcher of the grammar engine, in a step of the main addon', () => {
  it('masks and accepts what was sampled; without a tokenizer nothing is forced', async () => {
    const matcher = matcherOf(await compileConstraint({ choice: ['abc', 'bc'] }, vocabulary));
    const { samples } = await sample(matcher);
    expect([...samples.status]).toEqual([ROW_STATUS.SAMPLED]);
    expect([...samples.tokens]).toEqual([1]);
    expect(samples.forced).toBeUndefined();
    expect(grammarAddon().isFinal(matcher)).toBe(false);
    const next = await sample(matcher);
    expect([...next.samples.tokens]).toEqual([2]);
    expect(grammarAddon().isFinal(matcher)).toBe(true);
  });

  it('stands in one row only', async () => {
    const [matcher, other] = [0, 1].map(async () =>
      matcherOf(await compileConstraint({ choice: ['a'] }, vocabulary)),
    );
    const both = async (matchers: readonly Handle[], samplers = [0n, 1n]) => {
      const made = new Map(
        samplers.map((seed) => [seed, nativeSampler({ vocabSize: SIZE, temperature: 0 }, seed)]),
      );
      return await rows.sample({
        logits: Float32Array.of(0, 1, 2, 3),
        sampleRows: Int32Array.of(0, 0),
        samplers: samplers.map((seed) => made.get(seed)!),
        matchers,
        scoreRows: new Int32Array(),
      });
    };
    const [one, two] = [await matcher!, await other!];
    await expect(async () => await both([one, one])).rejects.toThrow(
      'matchers: expected one matcher for each row',
    );
    await expect(async () => await both([one, two], [0n, 0n])).rejects.toThrow(
      'samplers: expected one sampler for each row',
    );
    expect([...(await both([one, two])).samples.tokens]).toEqual([0, 0]);
  });

  it.each<[string, () => Promise<unknown>]>([
    ['a constraint', async () => constraintHandle(await compileConstraint({ choice: ['a'] }, vocabulary))],
    [
      'a handle of the main addon',
      async () => loadAddon().createDrafter({ minMatch: 2, usesText: true }, new Int32Array()),
    ],
    ['an object', async () => ({})],
  ])('is refused by name where it is %s', async (_, make) => {
    const other = (await make()) as Handle;
    await expect(async () => await sample(other)).rejects.toThrow('matchers: expected handles of matchers');
  });

  it('is refused where it is of another vocabulary', async () => {
    const longer = createVocabulary({ tokens: [...LETTERS, 'd'], eosTokenIds: [END] });
    const matcher = matcherOf(await compileConstraint({ choice: ['a'] }, longer));
    await expect(async () => await sample(matcher)).rejects.toThrow('matchers: of another vocabulary');
  });
});

describe('a handle of another kind is refused by name', () => {
  const grammar = grammarAddon();
  const made = compileConstraint({ choice: ['a'] }, vocabulary);
  const wrong = {} as Handle;
  it.each<[string, (constraint: Handle) => unknown]>([
    ['vocabulary: expected a handle of a vocabulary', (constraint) => grammar.vocabularyInfo(constraint)],
    ['vocabulary: expected a handle of a vocabulary', () => grammar.tokenBytes(wrong, 0)],
    [
      'constraint: expected a handle of a constraint',
      (constraint) => grammar.createMatcher(grammar.createMatcher(constraint)),
    ],
    ['constraint: expected a handle of a constraint', () => grammar.warmUp(wrong)],
    ['matcher: expected a handle of a matcher', (constraint) => grammar.accept(constraint, 0)],
    ['matcher: expected a handle of a matcher', () => grammar.forcedTokens(wrong)],
    ['matcher: expected a handle of a matcher', (constraint) => grammar.cloneMatcher(constraint)],
    [
      'mask: expected an Int32Array',
      (constraint) => grammar.fillMask(grammar.createMatcher(constraint), wrong as never),
    ],
  ])('%s', async (message, call) => {
    const constraint = constraintHandle(await made);
    expect(() => call(constraint)).toThrow(message);
  });
});

it('worker threads end while steps with their matchers run', async () => {
  const folder = path.resolve(import.meta.dirname, '../../../native/build/Release');
  const source = `
    const { parentPort, workerData } = require('node:worker_threads');
    const addon = require(workerData + '/onpolicy.node');
    const grammar = require(workerData + '/grammar.node');
    const size = 40_000;
    const texts = Array.from({ length: size - 1 }, (_, i) => Buffer.from('"' + i.toString(36) + '": ,"'));
    const offsets = new Uint32Array(size + 1);
    for (let i = 0; i < size; i++) offsets[i + 1] = offsets[i] + (texts[i]?.length ?? 0);
    const end = Int32Array.of(size - 1);
    const vocabulary = grammar.createVocabulary(Buffer.concat(texts), offsets, end, end);
    const text = JSON.stringify({ type: 'array', items: { type: 'object', additionalProperties: { enum: [1, 'x'] } } });
    const spec = { kind: 0, text, choices: [], schemaUris: [], schemas: [] };
    const rows = new addon.RowSampler(size, 2);
    const sampler = () => new addon.Sampler(new addon.SamplerPlan({ vocabSize: size }), 6n);
    grammar.compileConstraint(spec, vocabulary).then(({ constraint }) => {
      const matchers = [1, 2, 3, 4].map(() => grammar.createMatcher(constraint));
      const sampled = rows.sample({
        logits: new Float32Array(size),
        sampleRows: new Int32Array(4),
        samplers: matchers.map(sampler),
        matchers,
        scoreRows: new Int32Array(),
      });
      parentPort.postMessage('runs');
      return sampled;
    });`;
  const ends = Array.from({ length: 6 }, async () => {
    const worker = new Worker(source, { eval: true, workerData: folder });
    const message = await new Promise((resolve, reject) => {
      worker.once('message', resolve).once('error', reject);
    });
    await worker.terminate();
    return message;
  });
  expect(await Promise.all(ends)).toEqual(Array.from({ length: 6 }, () => 'runs'));
});
