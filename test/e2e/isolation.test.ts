/** Programs with an isolated runtime: its process ends with theirs, however they end, and does not keep them. */
import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { isGone } from '../runtime/isolation/children.ts';
import { runProgram } from './program.ts';

const ASK = `{ messages: [{ role: 'user', content: 'What is the capital of Peru?' }], temperature: 0 }`;
const LONG = `{ messages: [{ role: 'user', content: 'Tell me a story.' }], ignore_eos: true, n: 4 }`;
const CLEAN = { code: 0, signal: null, stderr: '' };
/** Makes `runtime`; `show` prints the id of its process, which comes last. */
const PROGRAM = `
  import { execFileSync } from 'node:child_process';
  import { createRuntime } from 'onpolicy';
  const runtime = await createRuntime({ isolate: true, home: 'home' });
  const ask = async () => (await runtime.createCompletion(${ASK})).choices[0].message.content;
  const children = () => execFileSync('ps', ['-A', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' }).split('\\n')
    .filter((line) => line.includes('isolation/program.js') && Number(line.trim().split(/ +/)[1]) === process.pid)
    .map((line) => Number(line.trim().split(/ +/)[0]));
  const show = () => console.log(String(children()));
`;

async function run(body: string): Promise<{ code: number | null; signal: string | null; lines: string[] }> {
  const { stdout, stderr, ...end } = await runProgram(PROGRAM + body, 'mjs', { timeoutMs: 30_000 });
  expect(stderr).toBe('');
  const lines = stdout.trim().split('\n');
  await isGone(Number(lines.at(-1)));
  return { ...end, lines };
}

describe.skipIf(process.platform === 'win32')('the process of an isolated runtime', () => {
  it.each([
    ['after an answer, without close()', 'console.log(await ask()); show();', 0],
    [
      'with a stream half read',
      `for await (const _ of await runtime.createCompletion({ ...${LONG}, stream: true })) break; show();`,
      0,
    ],
    [
      'with a stream that nobody reads',
      `await runtime.createCompletion({ ...${LONG}, stream: true }); show();`,
      0,
    ],
    [
      'by process.exit in the middle of an answer',
      `await ask(); show(); void runtime.createCompletion(${LONG}); setTimeout(() => process.exit(7), 100);`,
      7,
    ],
    [
      'by process.exit while its model is loaded',
      'void ask(); setImmediate(() => { show(); process.exit(7); });',
      7,
    ],
    [
      'by an exception',
      `await ask(); show(); process.on('uncaughtException', () => process.exit(3)); throw new Error();`,
      3,
    ],
    [
      'after close(), which waits for it',
      `await ask(); const [pid] = children(); await runtime.close(); if (children().length > 0) process.exitCode = 9; console.log(pid);`,
      0,
    ],
  ])('ends with a program that ends %s', async (_, body, code) => {
    expect(await run(body)).toMatchObject({ code, signal: null });
  });

  it('ends with a program that is killed', async () => {
    expect(
      await run(
        `await ask(); show(); void runtime.createCompletion(${LONG}); setTimeout(() => process.kill(process.pid, 'SIGKILL'), 50);`,
      ),
    ).toMatchObject({ code: null, signal: 'SIGKILL' });
  });

  it('leaves it to its program what a signal of the terminal does', async () => {
    const body = `
      await ask();
      show();
      for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) for (const pid of children()) process.kill(pid, signal);
      const before = String(children());
      console.log(await ask(), before);
      show();`;
    const { code, lines } = await run(body);
    expect(code).toBe(0);
    expect(lines[1]).toBe(`The capital of Peru is Lima. ${lines[0]}`);
  });

  it('keeps a program until its training job has ended', async () => {
    const body = `
      const { id: model_id } = await runtime.models.create({ base_model: 'onpolicy-tiny' });
      const messages = [{ role: 'user', content: 'Hi' }, { role: 'assistant', content: 'Hello' }];
      await runtime.sft({ model_id, data: [{ messages }] });
      process.on('exit', () => { show(); });
      globalThis.model = model_id;
      process.on('beforeExit', async () => {
        if (globalThis.seen) return;
        globalThis.seen = (await runtime.checkpoints.list(model_id)).data.length;
        console.log(globalThis.seen);
      });`;
    expect(await run(body)).toMatchObject({ code: 0, lines: ['1', expect.any(String)] });
  });

  it('works for worker threads, also one that is terminated', async () => {
    const outcome = await runProgram(
      `import { once } from 'node:events';
       import { isMainThread, parentPort, Worker } from 'node:worker_threads';
       import { createRuntime } from 'onpolicy';
       if (isMainThread) {
         const worker = new Worker(new URL(import.meta.url));
         console.log((await once(worker, 'message'))[0]);
         await worker.terminate();
         const second = new Worker(new URL(import.meta.url), { argv: ['close'] });
         console.log((await once(second, 'message'))[0]);
         await once(second, 'exit');
       } else {
         const runtime = await createRuntime({ isolate: true });
         const { choices } = await runtime.createCompletion(${ASK});
         parentPort.postMessage(choices[0].message.content);
         if (process.argv.includes('close')) await runtime.close();
         else await runtime.createCompletion(${LONG});
       }`,
      'mjs',
      { timeoutMs: 60_000 },
    );
    const answer = 'The capital of Peru is Lima.\n';
    expect(outcome).toEqual({ ...CLEAN, stdout: answer + answer });
    await expect
      .poll(
        () =>
          execFileSync('ps', ['-A', '-o', 'args='], { encoding: 'utf8' }).includes(
            'dist/runtime/isolation/program.js',
          ),
        { timeout: 10_000 },
      )
      .toBe(false);
  });
});
