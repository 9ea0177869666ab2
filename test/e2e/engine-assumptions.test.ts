/** Each assumption about the engine, broken on purpose: what relies on it is off, answers are those of the engine's own kernels, a line says so. */
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { architectureFiles } from '../architectures/files.ts';
import { writeTinyModel } from '../rl/tiny-model.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const canDecode = fs.existsSync(path.join(ROOT, 'native/media/decoder/build/Release/decoder.node'));
const canBreak =
  process.platform === 'linux' && process.arch === 'x64' && !spawnSync('cc', ['--version']).error;
const name = `assumptions about the engine${canBreak ? '' : ' (skipped: they are broken with a C compiler on x64 Linux)'}`;
/** Log-probabilities of kernels that round in another way differ less. */
const ROUNDING = 0.03;

type Work = {
  kind: 'answer' | 'adapt' | 'embed' | 'train';
  model: string;
  options?: { model?: object; deterministic?: boolean; speculation?: 'auto' };
  request?: { return_routed_experts?: boolean };
};
type Result = {
  code?: string;
  message?: string;
  tokens: number[][];
  logprobs: number[][];
  vectors: number[][];
  drafted: { accepted_prediction_tokens: number; rejected_prediction_tokens: number };
  kernels: [kernels: string, attention: string | null][];
  decoder: string | null;
  off: string[];
  holds: string[];
  experts: boolean[];
  opened?: boolean;
};

describe.skipIf(!canBreak)(name, () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-assumptions-'));
  afterAll(() => fs.rmSync(folder, { recursive: true, force: true }), 60_000);
  const library = path.join(folder, 'mutations.so');
  let files: Record<string, string>;
  beforeAll(async () => {
    const native = path.join(ROOT, 'native/include');
    const source = path.join(import.meta.dirname, 'engine-mutations.c');
    execFileSync('cc', ['-O1', '-shared', '-fPIC', '-I', native, '-o', library, source]);
    const vectors = path.join(folder, 'vectors.gguf');
    await writeTinyModel(vectors, { architecture: 'qwen3', type: 'f32', pooling: 3 });
    const golden = (file: string): string => path.join(ROOT, 'test/golden/media/qwen2vl', file);
    files = {
      ...architectureFiles(['qwen3', 'qwen35', 'qwen3moe', 'qwen35-mtp', 'gemma4-moe']),
      vectors,
      seeing: golden('text.gguf'),
      eyes: golden('mmproj.gguf'),
    };
  }, 300_000);

  function run(mutation: string | null, works: readonly Work[]): { results: Result[]; warnings: string[] } {
    const program = path.join(import.meta.dirname, 'engine-mutations.mjs');
    const given = works.map(({ model, options = {}, ...work }) => ({
      ...work,
      path: files[model],
      options: { ...options, model: { path: files[model], cacheType: 'f16', ...options.model } },
    }));
    const { stdout, stderr, status } = spawnSync(process.execPath, [program, JSON.stringify(given)], {
      encoding: 'utf8',
      env: {
        ...process.env,
        ...(mutation === null ? {} : { ENGINE_MUTATION: mutation, LD_PRELOAD: library }),
      },
    });
    expect(status, stderr).toBe(0);
    const { results, warnings } = JSON.parse(stdout) as { results: Result[]; warnings: [string, string][] };
    return { results, warnings: warnings.map(([code, text]) => `${code} ${text}`) };
  }

  const plain = new Map<string, Result>();
  /** The answer of the engine's own kernels, unbroken. */
  function plainOf(model: string): Result {
    const known =
      plain.get(model) ??
      run(null, [{ kind: 'answer', model, options: { model: { kernels: 'plain' } } }]).results[0]!;
    plain.set(model, known);
    return known;
  }

  function expectPlain(result: Result, model: string): void {
    expectEqual(result, plainOf(model));
  }

  function expectEqual(result: Result, expected: Result): void {
    expect(result.tokens).toEqual(expected.tokens);
    expect(distance(result, expected)).toBeLessThan(ROUNDING);
  }

  /** Greatest difference of the log-probabilities of two answers. */
  function distance(one: Result, other: Result): number {
    return Math.max(...one.logprobs[0]!.map((logprob, i) => Math.abs(logprob - other.logprobs[0]![i]!)));
  }

  it('hold with this release', () => {
    const { results, warnings } = run(null, [
      { kind: 'answer', model: 'qwen3' },
      { kind: 'answer', model: 'qwen35' },
      { kind: 'train', model: 'qwen3' },
      { kind: 'answer', model: 'gemma4-moe', options: { model: { kernels: 'plain', cacheType: 'f32' } } },
    ]);
    expect(warnings).toEqual([]);
    expect(results.map(({ off }) => off)).toEqual([[], [], [], []]);
    const opening = [
      'defaults',
      'trainingFunctions',
      'precision',
      'headFunctions',
      'layerFunctions',
      'sequences',
    ];
    const own = ['bufferTable', 'weightTypes', 'matmulResults', 'marks', 'attentionResults'];
    const passes = ['cacheBytes', 'nodes', 'cellPositions', 'statePlaces', 'formulas'];
    expect(results[2]!.holds).toEqual(expect.arrayContaining([...opening, ...own, ...passes]));
  }, 120_000);

  /** Mutation, model, what is off, and the kernels of matmuls and attention that are left: true: this library's. */
  const PLAIN: [mutation: string, model: string, off: string, matmuls: boolean, attention: boolean][] = [
    ['types', 'qwen3', 'weightTypes', false, false],
    ['matmul results', 'qwen3', 'matmulResults', false, false],
    ['attention results', 'qwen3', 'attentionResults', true, false],
    ['marks', 'qwen3', 'marks', true, false],
    ['attention source', 'qwen3', 'nodes', true, false],
    ['attention parameter', 'qwen3', 'nodes', true, false],
    ['matmul source', 'qwen3', 'nodes', false, false],
    ['matmul parameter', 'qwen3moe', 'nodes', false, false],
    ['rule source', 'qwen35', 'nodes', true, true],
    ['convolution source', 'qwen35', 'nodes', true, true],
    ['states', 'qwen35', 'statePlaces', true, true],
    ['sequences', 'qwen3', 'sequences', true, true],
    ['precision', 'qwen3', 'precision', true, true],
    ['buffers', 'qwen3', 'bufferTable', true, true],
    ['layers', 'qwen3', 'layerFunctions', true, true],
    ['cache', 'qwen3', 'cacheBytes', true, true],
  ];
  it.each(PLAIN)(
    '%s: answers of %s are right without %s',
    (mutation, model, off, matmuls, attention) => {
      const { results, warnings } = run(mutation, [{ kind: 'answer', model }]);
      const [result] = results as [Result];
      expectPlain(result, model);
      expect(result.off).toEqual([off]);
      const [kernels] = result.kernels as [[string, string]];
      expect(kernels.map((one) => one !== 'plain')).toEqual([matmuls, attention]);
      expect(warnings).toHaveLength(1);
      expect(warnings[0]).toMatch(/^ONPOLICY_ENGINE_CHANGED /);
    },
    120_000,
  );

  it('cells whose positions are unknown: deterministic is refused, answers are right', () => {
    const { results, warnings } = run('cells', [
      { kind: 'answer', model: 'qwen3' },
      { kind: 'answer', model: 'qwen3', options: { deterministic: true } },
    ]);
    expectPlain(results[0]!, 'qwen3');
    expect(results[0]!.off).toEqual(['nodes', 'cellPositions']);
    expect(results[1]).toMatchObject({ code: 'UNSUPPORTED' });
    expect(warnings).toHaveLength(2);
  }, 120_000);

  it('attention that differs: deterministic is refused', () => {
    const { results } = run('attention results', [
      { kind: 'answer', model: 'qwen3', options: { deterministic: true } },
    ]);
    expect(results[0]).toMatchObject({ code: 'UNSUPPORTED', message: expect.stringContaining('attention') });
  }, 120_000);

  it('functions of heads that are missing: the model does not draft with its own', () => {
    const work: Work = { kind: 'answer', model: 'qwen35-mtp', options: { speculation: 'auto' } };
    const drafts = ({ drafted }: Result): number =>
      drafted.accepted_prediction_tokens + drafted.rejected_prediction_tokens;
    expect(drafts(run(null, [work]).results[0]!)).toBeGreaterThan(0);
    const { results, warnings } = run('heads', [work]);
    expectPlain(results[0]!, 'qwen35-mtp');
    expect(drafts(results[0]!)).toBe(0);
    expect(results[0]!.off).toEqual(['headFunctions']);
    expect(warnings).toHaveLength(1);
  }, 120_000);

  it('another name of the choice of experts: return_routed_experts is refused, answers are right', () => {
    const { results, warnings } = run('experts', [
      { kind: 'answer', model: 'qwen3moe', request: { return_routed_experts: true } },
      { kind: 'answer', model: 'qwen3moe' },
      { kind: 'answer', model: 'qwen3moe', request: { return_routed_experts: true } },
    ]);
    const refused = { code: 'UNSUPPORTED', message: expect.stringContaining('return_routed_experts') };
    expect(results).toMatchObject([refused, { off: ['expertNames'] }, refused]);
    expectPlain(results[1]!, 'qwen3moe');
    expect(warnings).toHaveLength(1);
  }, 120_000);

  it('a function of training that is missing: only training is refused', () => {
    const { results, warnings } = run('training', [
      { kind: 'answer', model: 'qwen3' },
      { kind: 'train', model: 'qwen3' },
    ]);
    expectPlain(results[0]!, 'qwen3');
    expect(results[0]!.off).toEqual(['trainingFunctions']);
    expect(results[1]).toMatchObject({
      code: 'UNSUPPORTED',
      message: expect.stringContaining('ggml_out_prod'),
    });
    expect(warnings).toHaveLength(1);
  }, 120_000);

  it('a formula that differs: opening a trainer says so', () => {
    const { results, warnings } = run('formulas', [{ kind: 'train', model: 'qwen3' }]);
    expect(results[0]).toMatchObject({ opened: true, off: ['formulas'] });
    expect(warnings).toHaveLength(1);
  }, 120_000);

  it('other names of the factors of an adapter: deterministic refuses adapters, answers are right', () => {
    const work: Work = { kind: 'adapt', model: 'qwen3' };
    const deterministic = { ...work, options: { deterministic: true } };
    const whole = run(null, [work, deterministic, { ...work, options: { model: { kernels: 'plain' } } }]);
    const [, , expected] = whole.results as [Result, Result, Result];
    expect(distance(expected, plainOf('qwen3'))).toBeGreaterThan(3 * ROUNDING);
    expect(whole.results[0]!.holds).toContain('adapterNames');
    expect(whole.results[1]!.code).toBeUndefined();
    expect(whole.warnings).toEqual([]);
    const { results, warnings } = run('adapter', [work, deterministic]);
    expectEqual(results[0]!, expected);
    expect(results[0]!.off).toEqual(['adapterNames']);
    expect(results[1]).toMatchObject({ code: 'UNSUPPORTED' });
    expect(warnings).toHaveLength(1);
  }, 300_000);

  it.skipIf(!canDecode)(
    'a decoder of another layout: pictures are refused, answers of texts are right',
    () => {
      const seeing: Work = {
        kind: 'answer',
        model: 'seeing',
        options: { model: { mmproj: files['eyes']! } },
      };
      const blind: Work = { kind: 'answer', model: 'seeing', options: { model: { mmproj: null } } };
      expect(run(null, [seeing]).results[0]).toMatchObject({ decoder: expect.any(String), off: [] });
      const { results, warnings } = run('decoder', [seeing, blind]);
      const message = expect.stringMatching(/was built with llama\.cpp [\d.]+, whose layout is not that of/);
      expect(results[0]).toMatchObject({ code: 'NATIVE_UNAVAILABLE', message });
      expectPlain(results[1]!, 'seeing');
      expect(results[1]).toMatchObject({ off: ['decoder'], decoder: null });
      expect(warnings).toHaveLength(1);
    },
    120_000,
  );

  it('another name of the last states: the engine pools embeddings, which are equal', () => {
    const work: Work = { kind: 'embed', model: 'vectors' };
    const [expected] = run(null, [work]).results as [Result];
    const { results, warnings } = run('pooled state', [work]);
    expect(results[0]!.off).toEqual(['pooledState']);
    const differences = results[0]!.vectors.flatMap((vector, i) =>
      vector.map((number, j) => Math.abs(number - expected.vectors[i]![j]!)),
    );
    expect(Math.max(...differences)).toBeLessThan(0.01);
    expect(warnings).toHaveLength(1);
  }, 120_000);

  it('another layout: the libraries are refused, and the field is named', () => {
    const { results } = run('defaults', [{ kind: 'answer', model: 'qwen3' }]);
    expect(results[0]).toMatchObject({
      code: 'NATIVE_UNAVAILABLE',
      message: expect.stringContaining('llama_context_params.type_k'),
    });
  }, 120_000);
});
