/** Runtimes whose models are in a process of their own: what crosses to it, who is asked, and how it dies and starts again. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import type { OnpolicyError } from '../../../src/errors.ts';
import type { ChatCompletionRequest, RuntimeOptions } from '../../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { registerLogitsProcessor } from '../../../src/sampling/index.ts';
import { enginePids, isGone, killEngine } from './children.ts';

const root = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-isolated-'));
const opened: Runtime[] = [];
const open = async (options: RuntimeOptions = {}): Promise<Runtime> => {
  const home = fs.mkdtempSync(path.join(root, 'home-'));
  const runtime = await createRuntime({ isolate: true, threads: 1, home, ...options });
  opened.push(runtime);
  return runtime;
};
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
  expect(process.platform === 'win32' ? [] : enginePids()).toEqual([]);
});
afterAll(() => fs.rmSync(root, { recursive: true }));

const PERU: ChatCompletionRequest = {
  messages: [{ role: 'user', content: 'What is the capital of Peru?' }],
  temperature: 0,
};
/** The error of a stream whose process is killed when it has begun. */
const killedStream = async (
  runtime: Runtime,
  model: string,
  signal: NodeJS.Signals,
): Promise<OnpolicyError> => {
  const read = async (): Promise<void> => {
    const request = { ...PERU, model, ignore_eos: true, stream: true } as const;
    let isFirst = true;
    for await (const _ of await runtime.createCompletion(request)) {
      if (isFirst) killEngine(signal);
      isFirst = false;
    }
  };
  return await errorOf(read());
};
const ask = async (runtime: Runtime, more: Partial<ChatCompletionRequest> = {}): Promise<string | null> =>
  (await runtime.createCompletion({ ...PERU, ...more, stream: false })).choices[0]!.message.content;
const errorOf = (call: Promise<unknown>): Promise<OnpolicyError> =>
  call.then(
    () => expect.unreachable('it did not reject'),
    (error: OnpolicyError) => error,
  );
const EXAMPLE = [
  { role: 'user' as const, content: 'Hi' },
  { role: 'assistant' as const, content: 'Hello' },
];

describe('an isolated runtime', () => {
  it('has the methods of any runtime', async () => {
    const runtime = await open();
    expect(runtime.loaded()).toEqual([]);
    expect(runtime.servedModels()).toEqual(['onpolicy-tiny']);
    expect(await runtime.unload('onpolicy-tiny')).toBe(false);
    expect(await runtime.resetPrefixCache()).toEqual({ success: true });
    const ids = await runtime.tokenize('The capital');
    expect(await runtime.detokenize(ids)).toBe('The capital');
    expect(await runtime.contextSize()).toBe(1024);
    expect((await runtime.renderPrompt(PERU)).prompt.length).toBeGreaterThan(5);
    expect(runtime.loaded()).toMatchObject([{ name: 'onpolicy-tiny', state: 'ready' }]);
    const text = await runtime.createTextCompletion({
      prompt: 'The capital',
      max_tokens: 100, // more than come at once
      ignore_eos: true,
      stream: true,
    });
    let parts = 0;
    for await (const { object } of text) parts += object === 'text_completion' ? 1 : 0;
    expect(parts).toBeGreaterThan(1);
    const { generatedTokens, kernels } = runtime.stats();
    expect(generatedTokens).toBe(100);
    expect(kernels).toHaveLength(1);
    expect(await runtime.resetPrefixCache()).toEqual({ success: true });
    const again = await runtime.createTextCompletion({ prompt: 'The capital', max_tokens: 1 });
    expect(again.usage!.prompt_tokens_details!.cached_tokens).toBe(0);
    expect(runtime.mediaStats()).toEqual({ encodes: 0, running: 0, cachedBytes: 0 });
    const message = await runtime.createMessage({
      model: '',
      max_tokens: 20,
      messages: [...PERU.messages] as never,
    });
    expect(message.content).toMatchObject([{ text: 'The capital of Peru is Lima.' }]);
    const answered = await runtime.fetch('http://in.process/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(PERU),
    });
    expect(await answered.text()).toContain('Lima');
    const metrics = await runtime.fetch('http://in.process/metrics');
    expect(await metrics.text()).toMatch(/generated_tokens\S* [1-9]/);
    expect(await runtime.unload('onpolicy-tiny')).toBe(true);
    expect(runtime.loaded()).toEqual([]);
  });

  it('refuses what cannot cross, by its name, and goes on', async () => {
    const runtime = await open();
    registerLogitsProcessor('of the host', () => () => {});
    const rows: [Partial<ChatCompletionRequest>, object][] = [
      [{ logits_processors: [() => {}] }, { code: 'UNSUPPORTED', param: 'logits_processors.0' }],
      [{ logits_processors: ['of the host'] }, { code: 'UNSUPPORTED', param: 'logits_processors.0' }],
      [{ temperature: (() => 1) as never }, { code: 'INVALID_REQUEST', param: 'temperature' }],
      [
        { messages: [{ role: 'user', content: Symbol('x') as never }] },
        { code: 'INVALID_REQUEST', param: 'messages.0.content' },
      ],
      [{ temprature: 1 } as object, { code: 'INVALID_REQUEST', param: 'temprature' }],
      [
        {
          messages: [
            {
              role: 'user',
              content: [{ type: 'input_audio', input_audio: { data: new Uint8Array(9), format: 'wav' } }],
            },
          ],
        } as never,
        { code: 'UNSUPPORTED' },
      ],
    ];
    const local = await open({ isolate: false });
    for (const [fields, expected] of rows) {
      const error = await errorOf(runtime.createCompletion({ ...PERU, ...fields }));
      expect(error).toMatchObject(expected);
      if (!('logits_processors' in fields) && !error.message.includes('another process'))
        expect(error.message).toBe((await errorOf(local.createCompletion({ ...PERU, ...fields }))).message);
    }
    expect(await errorOf(runtime.createCompletion(PERU, { signl: 1 } as never))).toMatchObject({
      code: 'INVALID_REQUEST',
      param: 'options.signl',
    });
    expect(await ask(runtime)).toContain('Lima');
  });

  it('calls the functions of its options here', async () => {
    const logged: string[] = [];
    const progress: number[] = [];
    const tracked: unknown[] = [];
    const runtime = await open({
      log: (_level, text) => void logged.push(text),
      onProgress: (_model, fraction, phase) => void (phase === 'load' && progress.push(fraction)),
      tracker: {
        name: 'mine',
        startRun: async (model) => `run of ${model.base_model}`,
        log: async (run, metrics) => void tracked.push(run, metrics.length),
        deleteRun: async () => {},
      },
    });
    expect(await ask(runtime)).toContain('Lima');
    expect(progress.at(-1)).toBe(1);
    expect(logged.length).toBeGreaterThan(3);
    const { id: model_id } = await runtime.models.create({ base_model: 'onpolicy-tiny' });
    const job = await runtime.sft({ model_id, data: [{ messages: EXAMPLE }] });
    expect((await job.done).step).toBe(1);
    await expect.poll(() => tracked).toEqual(['run of onpolicy-tiny', 1]);
    const controller = new AbortController();
    const data = Array.from({ length: 400 }, () => ({ messages: EXAMPLE }));
    const stopped = await runtime.sft({ model_id, data }, { signal: controller.signal });
    controller.abort();
    expect(await errorOf(stopped.done)).toMatchObject({ code: 'ABORTED' });
  });

  it('closes at once, twice, before it began and in the middle of a request', async () => {
    const idle = await open();
    await idle.close();
    expect(await errorOf(ask(idle))).toMatchObject({ code: 'CLOSED' });
    const runtime = await open();
    const starting = errorOf(ask(runtime));
    await new Promise((resolve) => setTimeout(resolve, 20));
    await Promise.all([runtime.close(), runtime.close()]);
    expect(await starting).toMatchObject({ code: 'CLOSED' });
  });
});

describe.skipIf(process.platform === 'win32')('its process', () => {
  it('may die while it loads or runs a model; after three deaths in a row it waits', {
    timeout: 120_000,
  }, async () => {
    let pid: number | undefined;
    const kill = (): void => {
      if (pid !== undefined) process.kill(pid, 'SIGKILL');
      pid = undefined;
    };
    const runtime = await open({ onProgress: kill });
    for (let death = 1; death <= 3; death++) {
      const failed = errorOf(ask(runtime));
      await new Promise(setImmediate);
      [pid] = enginePids();
      const again = death < 3 ? 'for the next request' : 'in 1 s at the earliest';
      expect(await failed).toMatchObject({
        code: 'BACKEND_FAILED',
        message: `the engine's process ended by signal SIGKILL while it loaded onpolicy-tiny; it starts again ${again}`,
      });
    }
    const refused = await errorOf(ask(runtime));
    expect(refused).toMatchObject({
      code: 'BACKEND_FAILED',
      message: expect.stringMatching(
        /^the engine's process ended 3 times in a row, the last time by signal SIGKILL; it starts again in 1 s/,
      ),
      retryAfterMs: expect.any(Number),
    });
    await new Promise((resolve) => setTimeout(resolve, refused.retryAfterMs));
    expect(await ask(runtime)).toContain('Lima');
    expect((await killedStream(runtime, 'onpolicy-tiny', 'SIGSEGV')).message).toBe(
      "the engine's process ended by signal SIGSEGV while it used the model onpolicy-tiny; it starts again for the next request",
    );
    expect(runtime.loaded()).toEqual([]);
    expect(runtime.stats().running).toBe(0);
    expect(await ask(runtime)).toContain('Lima');
  });

  /** Returns the error of an isolated runtime whose process runs this program first. */
  const errorAfter = async (program: string, log?: RuntimeOptions['log']): Promise<string> => {
    const before = process.env['NODE_OPTIONS'];
    process.env['NODE_OPTIONS'] = `--import=data:text/javascript,${encodeURIComponent(program)}`;
    try {
      return (await errorOf(ask(await open(log ? { log } : {})))).message;
    } finally {
      if (before === undefined) delete process.env['NODE_OPTIONS'];
      else process.env['NODE_OPTIONS'] = before;
    }
  };

  it('says its last words in the error', async () => {
    const logged: string[] = [];
    const log = (_level: string, text: string): void => void logged.push(text);
    expect(
      await errorAfter("process.stderr.write('GGML_ASSERT(rows > 0) failed\\n'); process.abort()", log),
    ).toContain('ended by signal SIGABRT (GGML_ASSERT(rows > 0) failed) while it used the default model');
    expect(logged[0]).toBe('GGML_ASSERT(rows > 0) failed');
    expect(await errorAfter("throw new Error('a fault of ours')", log)).toContain(
      'ended with code 1 (Error: a fault of ours) while',
    );
  });

  it('fails each call with what keeps its runtime from opening', async () => {
    const program = "process.dlopen = () => { throw new Error('no addon') }";
    expect(await errorAfter(program, () => {})).toContain('no addon');
  });

  it('is a plain Node in Electron, too', async () => {
    const { versions } = process;
    Object.defineProperty(process, 'versions', { value: { ...versions, electron: '45.0.0' } });
    const program = "process.stderr.write('as Node: ' + process.env.ELECTRON_RUN_AS_NODE); process.exit(7)";
    const error = await errorAfter(program, () => {});
    Object.defineProperty(process, 'versions', { value: versions });
    expect(error).toContain('with code 7 (as Node: 1)');
  });

  it('is the writer of the home folder, which a dead one leaves at once, and loads named adapters again', async () => {
    const runtime = await open();
    const { id: model_id } = await runtime.models.create({ base_model: 'onpolicy-tiny', name: 'trained' });
    await (await runtime.sft({ model_id, data: [{ messages: EXAMPLE }] })).done;
    const folder = await runtime.checkpoints.folder(model_id, 1);
    const adapter = { name: 'mine', path: path.join(folder, 'adapter.gguf') };
    await runtime.adapters.load(adapter);
    expect(runtime.adapters.list()).toEqual([{ ...adapter, base: null }]);
    const [home] = fs
      .readdirSync(root)
      .map((name) => path.join(root, name))
      .filter((one) => folder.startsWith(one));
    const other = await open({ isolate: false, home: home! });
    const [pid] = enginePids();
    expect(await errorOf(other.models.create({ base_model: 'onpolicy-tiny' }))).toMatchObject({
      code: 'STORE_FAILED',
      message: expect.stringContaining(`process ${pid} `),
    });
    const answers = await Promise.all(['mine', 'trained'].map((model) => ask(runtime, { model })));
    await isGone(killEngine());
    expect(await Promise.all(['mine', 'trained'].map((model) => ask(runtime, { model })))).toEqual(answers);
    expect((await runtime.models.delete(model_id)).deleted_checkpoints).toBe(1);
    expect(await runtime.adapters.unload('mine')).toBe(true);
    expect(runtime.adapters.list()).toEqual([]);
  });

  it('dies with a training job, which has failed then', async () => {
    const runtime = await open();
    const { id: model_id } = await runtime.models.create({ base_model: 'onpolicy-tiny' });
    const data = Array.from({ length: 400 }, () => ({ messages: EXAMPLE }));
    const job = await runtime.sft({ model_id, data });
    const done = errorOf(job.done);
    await isGone(killEngine());
    expect((await done).message).toContain('the process that ran this');
    expect(job.status).toBe('failed');
  });
});

describe.skipIf(process.platform === 'win32')('an isolated model beside others', () => {
  it('is asked in its process by all its names, and others are not', async () => {
    const runtime = await open({
      isolate: false,
      models: { apart: { path: 'onpolicy-tiny', isolate: true, contextSize: 512 }, nick: 'apart' },
    });
    expect(await ask(runtime)).toContain('Lima');
    expect(enginePids()).toEqual([]);
    expect(await ask(runtime, { model: 'nick' })).toContain('Lima');
    expect(await runtime.contextSize('apart')).toBe(512);
    expect(await runtime.contextSize()).toBe(1024);
    expect(enginePids()).toHaveLength(1);
    expect(runtime.loaded()).toHaveLength(2);
    expect(runtime.stats().placement).toHaveLength(2);
    const registered = await runtime.models.create({ base_model: 'apart', name: 'registered' });
    const running = killedStream(runtime, 'registered', 'SIGKILL');
    const here = ask(runtime);
    expect((await running).message).toContain('while it used the model registered');
    expect(await here).toContain('Lima');
    expect(await ask(runtime, { model: 'apart' })).toContain('Lima');
    const training = runtime.sft({ model_id: registered.id, data: [{ messages: EXAMPLE }] });
    expect(await errorOf(training)).toMatchObject({ code: 'UNSUPPORTED' });
    expect(await runtime.unload('nick')).toBe(true);
    expect(runtime.loaded()).toHaveLength(1);
  });
});
