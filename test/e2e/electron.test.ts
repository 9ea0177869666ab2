/** The app in `examples/electron` without Electron: its model process as a fork and as a worker, and the whole app on a stand-in. */
import { fork } from 'node:child_process';
import { EventEmitter } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { type ModelHub, openModelHub } from '../fakes/model-hub.ts';
import { ROOT, runNode } from './program.ts';

const EXAMPLE = path.join(ROOT, 'examples', 'electron');
const STAND_INS = path.join(ROOT, 'test', 'e2e', 'electron');
const TINY = path.join(ROOT, 'models', 'onpolicy-tiny.gguf');
const PORT = pathToFileURL(path.join(STAND_INS, 'parent-port.mjs')).href;

type State = { state: string; phase?: string; fraction?: number; error?: { code: string; message: string } };
type Chunk = { choices: { delta: { content?: string } }[] };
type ModelProcess = {
  postMessage(message: unknown): void;
  kill(): unknown;
  on(event: 'message', listener: (message: object) => void): unknown;
  once(event: 'exit', listener: (code: number) => void): unknown;
};
type Host = {
  ask(request: object, onChunk: (chunk: Chunk) => void, signal: AbortSignal): Promise<void>;
  close(): void;
};
type HostOptions = { start: () => ModelProcess; model: object; onState: (state: State) => void };
const { ModelHost } = (await import(path.join(EXAMPLE, 'src', 'model-host.mjs'))) as {
  ModelHost: new (options: HostOptions) => Host;
};

const app = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-electron-'));
const program = path.join(app, 'src', 'model-process.mjs');
let hub: ModelHub;
beforeAll(async () => {
  fs.cpSync(path.join(EXAMPLE, 'src'), path.join(app, 'src'), { recursive: true });
  fs.copyFileSync(path.join(EXAMPLE, 'package.json'), path.join(app, 'package.json'));
  const modules = path.join(app, 'node_modules');
  fs.mkdirSync(path.join(modules, 'electron'), { recursive: true });
  fs.symlinkSync(ROOT, path.join(modules, 'onpolicy'), 'junction');
  fs.copyFileSync(path.join(STAND_INS, 'electron.cjs'), path.join(modules, 'electron', 'index.js'));
  fs.copyFileSync(path.join(STAND_INS, 'parent-port.mjs'), path.join(modules, 'electron', 'parent-port.mjs'));
  hub = await openModelHub({ 'onpolicy/tiny': { 'tiny.gguf': fs.readFileSync(TINY) } });
});
afterAll(() => {
  hub.close();
  fs.rmSync(app, { recursive: true });
});

/** The processes of a test, oldest first. */
const started: ModelProcess[] = [];
const STARTS: Readonly<Record<string, () => ModelProcess>> = {
  'a fork': () => {
    const child = fork(program, { execArgv: ['--import', PORT], serialization: 'advanced' });
    return Object.assign(child, {
      postMessage: (message: object) => void child.send(message),
      kill: () => process.kill(child.pid!, 'SIGKILL'),
    });
  },
  'a worker thread': () => {
    const worker = new Worker(
      `import(${JSON.stringify(PORT)}).then(() => import(${JSON.stringify(pathToFileURL(program).href)}))`,
      {
        eval: true,
      },
    );
    return Object.assign(worker, { kill: () => void worker.terminate() }) as unknown as ModelProcess;
  },
};

const never = new AbortController().signal;
const request = (content: string, more = {}): object => ({
  messages: [{ role: 'user', content }],
  temperature: 0,
  ...more,
});
const PERU = request('What is the capital of Peru?');
const STORY = request('Tell me a story.', { ignore_eos: true });

describe.each(Object.entries(STARTS))('the model in %s', (_, start) => {
  let host: Host;
  let states: State[];
  const openHost = (model: object): void => {
    states = [];
    started.length = 0;
    host = new ModelHost({
      model: { home: path.join(app, 'home'), ...model },
      onState: (state) => void states.push(state),
      start: () => {
        started.push(start());
        return started.at(-1)!;
      },
    });
  };
  const reaches = (wanted: string, count = 1): Promise<void> =>
    vi.waitFor(() => expect(states.filter(({ state }) => state === wanted)).toHaveLength(count), 30_000);
  const answer = async (asked: object, signal = never): Promise<string> => {
    let text = '';
    await host.ask(asked, (chunk) => (text += chunk.choices[0]?.delta.content ?? ''), signal);
    return text;
  };
  afterEach(async () => {
    const ended = new Promise((resolve) => started.at(-1)!.once('exit', resolve));
    host.close();
    expect(await ended).toBe(0);
  });

  it('is downloaded with its progress, and answers several at once in pieces', async () => {
    const folder = fs.mkdtempSync(path.join(app, 'models-'));
    openHost({ model: 'hf:onpolicy/tiny/tiny.gguf', hub: { endpoint: hub.endpoint, folder } });
    await reaches('ready');
    for (const phase of ['download', 'load'])
      expect(states.filter((state) => state.phase === phase).at(-1)!.fraction).toBe(1);
    let pieces = 0;
    const [first, second] = await Promise.all([answer(PERU), host.ask(PERU, () => pieces++, never)]);
    expect(first).toBe('The capital of Peru is Lima.');
    expect(second).toBeUndefined();
    expect(pieces).toBeGreaterThan(1);
  });

  it('ends an answer that is aborted, before or while it runs, and goes on', async () => {
    openHost({ model: TINY });
    await reaches('ready');
    const controller = new AbortController();
    const running = host.ask(STORY, () => controller.abort(), controller.signal);
    await expect(running).rejects.toMatchObject({ code: 'ABORTED' });
    await expect(answer(STORY, AbortSignal.abort())).rejects.toMatchObject({ code: 'ABORTED' });
    expect(await answer(PERU)).toBe('The capital of Peru is Lima.');
  });

  it('says what is wrong with a request, with its code', async () => {
    openHost({ model: TINY });
    await expect(answer({ ...PERU, temprature: 1 })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining('temprature'),
    });
  });

  it('says that a model is not there', async () => {
    openHost({ model: path.join(app, 'none.gguf') });
    await reaches('failed');
    expect(states.at(-1)!.error).toMatchObject({ code: 'MODEL_NOT_FOUND' });
    await expect(answer(PERU)).rejects.toMatchObject({ code: 'MODEL_NOT_FOUND' });
  });

  it('is started again when it crashes: what ran fails, what comes then is answered', async () => {
    openHost({ model: TINY });
    await reaches('ready');
    const running = host.ask(STORY, () => started[0]!.kill(), never);
    await expect(running).rejects.toMatchObject({ code: 'PROCESS_ENDED' });
    expect(await answer(PERU)).toBe('The capital of Peru is Lima.');
    expect(started).toHaveLength(2);
  });
});

it('a model process that always ends is started three times, and then given up', async () => {
  const states: State[] = [];
  const start = vi.fn(() => {
    const ending = Object.assign(new EventEmitter(), { postMessage: () => {}, kill: () => {} });
    setImmediate(() => ending.emit('exit', 3));
    return ending;
  });
  const host = new ModelHost({ start, model: {}, onState: (state) => void states.push(state) });
  const asked = host.ask(PERU, () => {}, never);
  await expect(asked).rejects.toMatchObject({
    code: 'PROCESS_ENDED',
    message: 'the model process ended with code 3',
  });
  await vi.waitFor(() => expect(states.at(-1)!.state).toBe('failed'));
  expect(start).toHaveBeenCalledTimes(3);
  await expect(host.ask(PERU, () => {}, never)).rejects.toMatchObject({ code: 'PROCESS_ENDED' });
});

it('the whole app shows an answer, stops one, and ends', async () => {
  const env = {
    ...process.env,
    MODEL: TINY,
    USER_DATA: path.join(app, 'data'),
    WINDOW_PROGRAM: path.join(STAND_INS, 'window.mjs'),
  };
  const outcome = await runNode([path.join(app, 'src', 'main.mjs')], { cwd: app, env });
  expect(outcome).toMatchObject({ code: 0, signal: null, stderr: '' });
  expect(JSON.parse(outcome.stdout)).toEqual([
    'The capital of Peru is Lima.',
    expect.stringMatching(/^\(ABORTED: .*\)$/),
  ]);
});
