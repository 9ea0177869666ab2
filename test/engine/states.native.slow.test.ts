/** Models whose caches cannot be cut everywhere: their answers are those of the bare engine, whatever was kept of other prompts. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Engine, type Group, type SavedPrompt, Sequence, Speculation } from '../../src/engine/index.ts';
import { type DraftSources, loadAddon } from '../../src/engine/native/index.ts';
import { type GgufModel, loadGguf } from '../../src/models/formats/gguf.ts';
import { randomNumbers } from '../fakes/random-numbers.ts';
import { greedyTokens, promptLogits, whyNoBareEngine } from '../models/formats/reference/bare-engine.ts';

/** Name, whether the engine can take its state back by some tokens, and whether it has a state rather than windows. */
const MODELS = [
  ['qwen35', true, true],
  ['lfm2', true, true],
  ['nemotron_h', true, true],
  ['qwen3next', false, true],
  ['kimi-linear', false, true],
  ['granitehybrid', false, true],
  ['falcon-h1', false, true],
  ['mamba2', false, true],
  ['rwkv6', false, true],
  ['mamba', false, true],
  ['jamba', false, true],
  ['qwen35moe', true, true],
  ['gemma3', false, false],
  ['gpt-oss', false, false],
] as const;

const root = path.resolve(import.meta.dirname, '../..');
const { writeArchitecture } = (await import(path.join(root, 'scripts/make/architectures/write.mjs'))) as {
  writeArchitecture(file: string, options: { name: string }): Promise<void>;
};

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-states-'));
const ROLLBACK = 4;
const cleanup: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of cleanup.reverse()) await close();
  fs.rmSync(folder, { recursive: true });
});

type Answer = { readonly tokens: number[]; readonly logprobs: number[]; cached: number };
type Asked = {
  readonly n?: number;
  readonly checkpoints?: number[];
  readonly sources?: DraftSources;
  readonly key?: string;
};

/** One model with an engine on it. */
class Run {
  readonly gguf: GgufModel;
  readonly engine: Engine;
  #arrivals = 0;

  constructor(gguf: GgufModel, engine: Engine) {
    this.gguf = gguf;
    this.engine = engine;
  }

  static async open(
    file: string,
    { kvTokens = 4096, slotCount = 24, maxRunning = 16, isKvUnified = true } = {},
  ): Promise<Run> {
    const gguf = await loadGguf({ path: file, gpu: false, kernels: 'plain' });
    const backend = await gguf.createBackend({
      kvTokens,
      isKvUnified,
      isWindowCacheFull: isKvUnified,
      batchTokens: 64,
      slotCount,
      maxOutputs: 64,
      threads: 1,
      rollbackTokens: ROLLBACK,
    });
    const engine = new Engine(backend, {
      maxRunning,
      scheduling: 'fcfs',
      prefixCache: true,
      checkpointBytes: 2 ** 28,
    });
    cleanup.push(
      () => gguf.close(),
      () => engine.close(),
    );
    return new Run(gguf, engine);
  }

  group(prompt: readonly number[], { checkpoints = [], key = '' }: Asked = {}): Group {
    const arrival = this.#arrivals++;
    return { prompt: Int32Array.from(prompt), cacheKey: key, adapter: 0, priority: 0, arrival, checkpoints };
  }

  /** Greedy answers of so many tokens. */
  ask(
    prompt: readonly number[],
    count: number,
    asked: Asked = {},
    group = this.group(prompt, asked),
  ): Promise<Answer[]> {
    const { n = 1, sources } = asked;
    return Promise.all(
      Array.from({ length: n }, (_, index) => this.#choice(group, index, count, sources ?? null, null)),
    );
  }

  async save(prompt: readonly number[]): Promise<SavedPrompt> {
    const saved: SavedPrompt = { state: null, tokens: 0 };
    await this.#choice(this.group(prompt), 0, 1, null, saved);
    return saved;
  }

  #choice(
    group: Group,
    index: number,
    count: number,
    sources: DraftSources | null,
    savedPrompt: SavedPrompt | null,
  ): Promise<Answer> {
    const { Sampler, SamplerPlan, createDrafter } = loadAddon();
    const { vocabSize } = this.gguf.native;
    const sampler = new Sampler(new SamplerPlan({ vocabSize, temperature: 0, topLogprobs: 0 }), 0n);
    const speculation =
      sources && new Speculation({ drafter: createDrafter(sources, group.prompt), maxTokens: 8, trust: 1 });
    const sequence = new Sequence(group, index, sampler, { speculation, maxOutputs: count, savedPrompt });
    return new Promise((resolve, reject) => {
      const answer: Answer = { tokens: [], logprobs: [], cached: 0 };
      this.engine.submit(sequence, {
        onToken: (token, rows, row) => {
          answer.tokens.push(token);
          answer.logprobs.push(rows.logprobs[row]!);
          answer.cached = sequence.place.cachedTokens;
          if (answer.tokens.length === count) resolve(answer);
          return answer.tokens.length === count;
        },
        onComplete: () => resolve(answer),
        onError: reject,
      });
    });
  }
}

const why = whyNoBareEngine();

describe.skipIf(why !== null).each(MODELS)('%s', (name, takesBack, hasState) => {
  const file = path.join(folder, `${name}.gguf`);
  beforeAll(() => writeArchitecture(file, { name }));

  const random = randomNumbers(7);
  const prompt = (count: number): number[] =>
    Array.from({ length: count }, () => 5 + Math.floor(random() * 60));

  let last: { readonly ids: readonly number[]; readonly rows: readonly Float32Array[] } = {
    ids: [],
    rows: [],
  };
  /** Logits after each token; a beginning of the last tokens is not computed again. */
  function bareLogits(ids: readonly number[]): readonly Float32Array[] {
    if (!ids.every((id, i) => id === last.ids[i])) last = { ids, rows: promptLogits(file, ids, 'f32') };
    return last.rows;
  }

  /** Each token is the bare engine's, or its logit is as high; log-probabilities are its own. */
  function check(asked: readonly number[], { tokens, logprobs }: Answer): void {
    const rows = bareLogits([...asked, ...tokens]).slice(asked.length - 1);
    for (const [i, token] of tokens.entries()) {
      const row = rows[i]!;
      const most = Math.max(...row);
      const norm = most + Math.log(row.reduce((sum, logit) => sum + Math.exp(logit - most), 0));
      expect(row[token]! - most, `token ${i}`).toBeGreaterThan(-1e-3);
      expect(logprobs[i]).toBeCloseTo(row[token]! - norm, 2);
    }
  }

  it('answers as the bare engine, alone and among 8', async () => {
    const run = await Run.open(file);
    expect(run.engine.rollbackTokens).toBe(hasState ? (takesBack ? ROLLBACK : 0) : Infinity);
    const asked = Array.from({ length: 8 }, (_, i) => prompt(3 + 11 * i));
    const [alone] = await run.ask(asked[3]!, 24);
    expect(alone!.tokens).toEqual(greedyTokens(file, [asked[3]!], 24, { f32: true })[0]);
    check(asked[3]!, alone!);
    const answers = await Promise.all(asked.map((each, i) => run.ask(each, 8 + 3 * i, { key: 'among' })));
    for (const [i, [answer]] of answers.entries()) check(asked[i]!, answer!);
  });

  it.each(hasState ? [true] : [true, false])(
    'continues a conversation where its last turn ended, and an edited one from a checkpoint (unified KV cache: %s)',
    async (isKvUnified) => {
      const run = await Run.open(file, isKvUnified ? {} : { isKvUnified, slotCount: 8, kvTokens: 8 * 1024 });
      let text = prompt(90);
      let before = 0;
      for (let turn = 0; turn < 4; turn++) {
        const places = [text.length - 40, text.length - 3];
        const [answer] = await run.ask(text, 12, { checkpoints: places });
        check(text, answer!);
        const most = isKvUnified ? before : 0; // else the edited prompt has taken the slot
        if (turn > 0) expect(answer!.cached).toBeGreaterThanOrEqual(most);
        before = text.length + answer!.tokens.length - 1;
        const [again] = await run.ask(text, 5, { checkpoints: places });
        check(text, again!);
        expect(again!.cached).toBe(text.length - (isKvUnified && !hasState ? 1 : 3)); // cells of a pool stay behind a window
        const edited = [...text.slice(0, -20), ...prompt(10)];
        const [other] = await run.ask(edited, 5);
        check(edited, other!);
        expect(other!.cached).toBeGreaterThanOrEqual(text.length - 40);
        text = [...text, ...answer!.tokens, ...prompt(90)];
      }
    },
  );

  it('computes the prompt of several choices once, and of several requests up to where they part', async () => {
    const run = await Run.open(file);
    const shared = prompt(100);
    const answers = await run.ask(shared, 10, { n: 6 });
    for (const answer of answers) check(shared, answer);
    expect(new Set(answers.map(({ tokens }) => tokens.join(' '))).size).toBe(1);
    const others = await Promise.all(
      Array.from({ length: 5 }, () => [...shared.slice(0, 80), ...prompt(7)]).map(async (each) => {
        const [answer] = await run.ask(each, 6);
        check(each, answer!);
        return answer!.cached;
      }),
    );
    expect(others.filter((cached) => cached >= 64).length).toBeGreaterThanOrEqual(4);
  });

  it('answers the same when sequences are preempted for lack of room', async () => {
    const run = await Run.open(file, { kvTokens: 256, slotCount: 8, maxRunning: 6 });
    const asked = Array.from({ length: 6 }, () => prompt(30));
    const answers = await Promise.all(asked.map((each) => run.ask(each, 40)));
    for (const [i, [answer]] of answers.entries()) check(asked[i]!, answer!);
  });

  it('answers the same with drafts, and checks them where they can be taken back', async () => {
    const run = await Run.open(file);
    const repeated = Array.from({ length: 60 }, (_, i) => 5 + (i % 6));
    const plain = greedyTokens(file, [repeated], 40, { f32: true })[0]!;
    // Every other draft is wrong.
    const prediction = Int32Array.from(plain, (token, i) => (i % 7 === 3 ? token + 1 : token));
    const sources = { minMatch: 2, usesText: true, prediction };
    const [answer] = await run.ask(repeated, 40, { sources });
    expect(answer!.tokens).toEqual(plain);
    check(repeated, answer!);
    const asked = Array.from({ length: 5 }, () => prompt(20));
    const answers = await Promise.all(asked.map((each) => run.ask([...each, ...each], 20, { sources })));
    for (const [i, [each]] of answers.entries()) check([...asked[i]!, ...asked[i]!], each!);
    const { draftedTokens, acceptedTokens } = run.engine.stats();
    if (hasState && !takesBack) return expect(draftedTokens).toBe(0);
    expect(acceptedTokens).toBeGreaterThan(5);
    expect(draftedTokens).toBeGreaterThan(acceptedTokens);
  });

  it('hands prompts over', async () => {
    const from = await Run.open(file);
    const to = await Run.open(file);
    const handed = prompt(70);
    const { state, tokens } = await from.save(handed);
    const group = to.group(handed);
    await to.engine.adopt(group, group.prompt.subarray(0, tokens), state!);
    const [answer] = await to.ask(handed, 10, {}, group);
    check(handed, answer!);
    expect(answer!.cached).toBe(69);
  });
});
