import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { answer } from '../../src/answer/answer.ts';
import { LeaseScope } from '../../src/common/index.ts';
import type { AdapterFile } from '../../src/models/adapter-files.ts';
import { type AdapterContext, Adapters } from '../../src/models/adapters.ts';
import { ggufFormat } from '../../src/models/gguf-format.ts';
import { type FindRegistered, leaseModel } from '../../src/models/model-lease.ts';
import { openModels } from '../../src/models/models.ts';
import { NamedAdapters } from '../../src/models/named-adapters.ts';
import { EMBEDDED_MODEL } from '../../src/models/named-models.ts';
import { type ChatCompletion, checkAndAdmitChat } from '../../src/protocol/index.ts';
import type { ChatCompletionStream } from '../../src/protocol/service/index.ts';
import { CHECKPOINT_FILES } from '../../src/rl/checkpoint-files.ts';
import { openTrainer } from '../../src/rl/trainer.ts';
import { checkOptions } from '../../src/runtime/options.ts';
import { engineScores } from '../fakes/engine-scores.ts';
import { randomAdapter } from '../rl/random-adapter.ts';
import { normals } from '../rl/tiny-model.ts';

const root = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-hot-swap-'));
const models = openModels(
  { ...checkOptions({ gpu: false }), formats: [ggufFormat], notice: () => {} },
  null,
  {},
);
const messages = [{ role: 'user', content: 'Tell me a story.' }];
let newest = 0;
let arrivals = 0;

const fileOf = (step: number) => path.join(root, String(step), CHECKPOINT_FILES.gguf);
/** A registered model `tuned` whose steps lie in a folder. */
const find: FindRegistered = async (reference) => {
  const [name, named] = reference.split('@');
  if (name !== 'tuned') return null;
  const step = named === undefined ? newest : Number(named);
  return {
    id: 'tuned',
    baseModel: EMBEDDED_MODEL,
    adapter: step === 0 ? null : { identity: `checkpoint-${step}`, path: fileOf(step) },
    isNewest: step === newest,
    [Symbol.dispose]() {},
  };
};

const references = { models, find, named: new NamedAdapters() };

async function ask(model: string | null, more: object = {}): Promise<ChatCompletion> {
  return (await begin(model, more)) as ChatCompletion;
}

async function begin(model: string | null, more: object): Promise<ChatCompletion | ChatCompletionStream> {
  using leases = new LeaseScope();
  const leased = leases.add(await leaseModel(references, model, {}));
  const request = { model, messages, temperature: 0, max_tokens: 40, logprobs: true, return_token_ids: true };
  const valid = checkAndAdmitChat({ ...request, ...more }, { scheduling: 'fcfs', maxLogprobs: null });
  return await answer(leased, valid, {
    signal: undefined,
    leases,
    processedLogprobs: false,
    speculation: 'auto',
    answerIndexBytes: 2 ** 20,
    kvTransferFolder: path.join(root, 'kv'),
    arrival: arrivals++,
    cacheSalt: null,
    background: false,
  });
}

const idsOf = ({ choices }: ChatCompletion) => choices[0]!.token_ids!;

beforeAll(async () => {
  const normal = normals(3);
  await using trainer = await openTrainer({ model: EMBEDDED_MODEL, gpu: false, threads: 1 });
  for (const step of [1, 2, 3]) {
    await trainer.loadAdapter(randomAdapter(trainer, normal));
    await trainer.save(path.join(root, String(step)));
  }
});
afterAll(async () => {
  await models.memory.close();
  fs.rmSync(root, { recursive: true });
});

describe('a registered model', () => {
  it('answers as its base model until it has a checkpoint, then with the newest', async () => {
    newest = 0;
    const base = await ask(null);
    expect(idsOf(await ask('tuned'))).toEqual(idsOf(base));
    newest = 1;
    const tuned = await ask('tuned');
    expect(idsOf(tuned)).not.toEqual(idsOf(base));
    expect(tuned.system_fingerprint).toContain('checkpoint-1');
    expect(idsOf(await ask('tuned@0'))).toEqual(idsOf(base));
    expect(idsOf(await ask(null))).toEqual(idsOf(base)); // nothing of the adapter is left in the cache
    newest = 2;
    expect(idsOf(await ask('tuned@1'))).toEqual(idsOf(tuned));
    expect(idsOf(await ask('tuned'))).not.toEqual(idsOf(tuned));
  });

  it('computes what llama.cpp computes with the adapter, alone and beside other adapters', async () => {
    newest = 3;
    const names = ['tuned', 'tuned@1', null, 'tuned@2', 'tuned'];
    const alone: ChatCompletion[] = [];
    for (const name of names) alone.push(await ask(name));
    const together = await Promise.all(names.map((name) => ask(name)));
    for (const [i, one] of together.entries()) expect(idsOf(one)).toEqual(idsOf(alone[i]!));
    const tokens = Int32Array.from([...together[0]!.prompt_token_ids!, ...idsOf(together[0]!)]);
    const scores = await engineScores(EMBEDDED_MODEL, tokens, fileOf(3));
    const sampled = together[0]!.choices[0]!.logprobs!.content!.map(({ logprob }) => logprob);
    for (const [i, logprob] of [...scores.slice(-sampled.length)].entries())
      expect(Math.abs(logprob - sampled[i]!)).toBeLessThan(1e-2);
  });

  it('lets a request that runs finish with the adapter that it began with', async () => {
    newest = 1;
    const expected = idsOf(await ask('tuned'));
    const stream = (await begin('tuned', { stream: true })) as ChatCompletionStream;
    const ids: number[] = [];
    for await (const chunk of stream) {
      ids.push(...(chunk.choices[0]?.token_ids ?? []));
      if (newest === 1) {
        newest = 2;
        await ask('tuned', { max_tokens: 1 });
      }
    }
    expect(ids).toEqual(expected);
  });

  it('has its first token within 200 ms of a plain one after a swap', async () => {
    newest = 1;
    const firstToken = async () => {
      const start = performance.now();
      await ask('tuned', { max_tokens: 1 });
      return performance.now() - start;
    };
    await firstToken();
    const plain = await firstToken();
    const swapped: number[] = [];
    for (const step of [2, 3, 1, 2]) {
      newest = step;
      swapped.push(await firstToken());
    }
    expect(Math.min(...swapped) - plain).toBeLessThan(200); // the machine may be busy at one of them
  });

  it('keeps what is used from being freed, and refuses a file that is no adapter', async () => {
    fs.writeFileSync(path.join(root, 'bad'), 'no adapter');
    const { model } = await leaseModel(references, null, {});
    await expect(model.adapters.use({ identity: 'bad', path: path.join(root, 'bad') })).rejects.toMatchObject(
      {
        code: 'MODEL_INVALID',
      },
    );
    expect(idsOf(await ask('tuned', { ignore_eos: true }))).toHaveLength(40);
  });
});

/** Returns a context for loading adapters that logs its calls. Each adapter takes one byte. */
function logged(log: string[]): AdapterContext {
  return {
    engine: {
      loadAdapter: async (file) => log.push(`load ${file}`),
      mixAdapters: async (parts, scales) => log.push(`mix ${parts} by ${scales}`),
      freeAdapter: async (adapter) => void log.push(`free ${adapter}`),
    },
    files: {
      sizeOf: async () => 1,
      open: async ({ path: file }) => ({ file, [Symbol.asyncDispose]: async () => {} }),
    },
    reserve: async () => ({ [Symbol.dispose]: () => {} }),
  };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('Adapters', () => {
  it('mixes each pair of files and scales once, whatever their order, and frees the mix before its parts', async () => {
    const log: string[] = [];
    const adapters = new Adapters(logged(log));
    const [one, two] = ['a', 'b'].map((name) => ({ identity: name, path: name })) as [never, never];
    const mix = (...parts: [AdapterFile, number][]) =>
      adapters.mix(parts.map(([file, scale]) => ({ file, scale })));
    const leases = [await mix([one, 1], [two, 0.5]), await mix([two, 0.25], [one, 1], [two, 0.25])];
    expect(leases.map((lease) => lease!.identity)).toEqual(['a*1+b*0.5', 'a*1+b*0.5']);
    expect(log).toEqual(['load a', 'load b', 'mix 1,2 by 1,0.5']);
    expect(await mix([one, 0], [two, 1], [two, -1])).toBeNull();
    expect((await mix([one, 1]))!.number).toBe(1);
    for (const lease of leases) lease![Symbol.dispose]();
    await settled();
    await settled();
    expect(log.slice(3)).toEqual(['free 3', 'free 2']); // the first one is used by itself
  });

  it('loads a file once, and frees it when its last user and keeper are gone', async () => {
    const log: string[] = [];
    const adapters = new Adapters(logged(log));
    const [one, two] = [1, 2].map((i) => ({ identity: `id ${i}`, path: `file ${i}` })) as [never, never];
    await adapters.keep('model', one);
    const uses = await Promise.all([adapters.use(one), adapters.use(one)]);
    expect(uses.map(({ number }) => number)).toEqual([1, 1]);
    await adapters.keep('model', two);
    await adapters.keep('model', two);
    uses[0]![Symbol.dispose]();
    uses[0]![Symbol.dispose]();
    await settled();
    expect(log).toEqual(['load file 1', 'load file 2']);
    uses[1]![Symbol.dispose]();
    await settled();
    expect(log).toEqual(['load file 1', 'load file 2', 'free 1']);
    adapters.drop('model');
    await settled();
    expect(log.at(-1)).toBe('free 2');
  });
});
