/** Places that a program may load the package from: worker threads, CommonJS, several runtimes side by side. */
import { describe, expect, it } from 'vitest';
import { runProgram } from './program.ts';

const ASK = `{ messages: [{ role: 'user', content: 'What is the capital of Peru?' }], temperature: 0 }`;
const ANSWER = 'The capital of Peru is Lima.';
const LONG = `{ messages: [{ role: 'user', content: 'Tell me a story.' }], ignore_eos: true, n: 4 }`;
/** A program that runs again as its own worker: `inWorker` in the worker, `inMain` in the main thread. */
const withWorker = (inMain: string, inWorker: string): string => `
  import { once } from 'node:events';
  import { isMainThread, parentPort, Worker } from 'node:worker_threads';
  import { createCompletion } from 'onpolicy';
  const open = () => new Worker(new URL(import.meta.url));
  const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
  const ask = async () => (await createCompletion(${ASK})).choices[0].message.content;
  if (isMainThread) { ${inMain} } else { ${inWorker} }`;

const CLEAN = { code: 0, signal: null, stderr: '' };

describe('worker threads', () => {
  it('answer, and so does the main thread at the same time', async () => {
    const outcome = await runProgram(
      withWorker(
        `const workers = [open(), open()];
         const answers = workers.map(async (worker) => (await once(worker, 'message'))[0]);
         console.log([await ask(), ...(await Promise.all(answers))].join('|'));`,
        `parentPort.postMessage(await ask());`,
      ),
    );
    expect(outcome).toEqual({ ...CLEAN, stdout: `${ANSWER}|${ANSWER}|${ANSWER}\n` });
  });

  it('can be terminated in the middle of generation, and started again', async () => {
    const outcome = await runProgram(
      withWorker(
        `for (let round = 0; round < 3; round++) {
           const worker = open();
           await once(worker, 'message');
           await sleep(50);
           await worker.terminate();
         }
         console.log(await ask());`,
        `createCompletion(${LONG}); await ask(); parentPort.postMessage('running'); await sleep(10_000);`,
      ),
    );
    expect(outcome).toEqual({ ...CLEAN, stdout: `${ANSWER}\n` });
  });

  it('do not keep the process alive when the main thread exits', async () => {
    const outcome = await runProgram(
      withWorker(
        `await once(open(), 'message'); process.exit(3);`,
        `createCompletion(${LONG}); await ask(); parentPort.postMessage('running'); await sleep(10_000);`,
      ),
    );
    expect(outcome).toEqual({ ...CLEAN, code: 3, stdout: '' });
  });
});

describe('runtimes', () => {
  it('live side by side, and closing one leaves the other alone', async () => {
    const outcome = await runProgram(`
      import { createRuntime } from 'onpolicy';
      const [first, second] = await Promise.all([createRuntime({ maxSequences: 2 }), createRuntime({ contextSize: 256 })]);
      const ask = async (runtime) => (await runtime.createCompletion(${ASK})).choices[0].message.content;
      console.log((await Promise.all([ask(first), ask(second), ask(first)])).join('|'));
      const running = second.createCompletion({ ...${LONG}, max_completion_tokens: 100 });
      await ask(second);
      await first.close();
      const { choices } = await running;
      console.log(choices.map((choice) => choice.finish_reason).join('|'));
      console.log(await ask(second));
      await second.close();`);
    expect(outcome).toEqual({
      ...CLEAN,
      stdout: `${[ANSWER, ANSWER, ANSWER].join('|')}\nlength|length|length|length\n${ANSWER}\n`,
    });
  });

  it('open and close many times over', async () => {
    const outcome = await runProgram(`
      import { createRuntime } from 'onpolicy';
      for (let round = 0; round < 10; round++) {
        const runtime = await createRuntime();
        const answer = await runtime.createCompletion(${ASK});
        await runtime.close();
        if (answer.choices[0].message.content !== '${ANSWER}') throw new Error(answer.choices[0].message.content);
      }
      console.log('done');`);
    expect(outcome).toEqual({ ...CLEAN, stdout: 'done\n' });
  });
});

describe('module systems', () => {
  it('CommonJS gets the package by require', async () => {
    const outcome = await runProgram(
      `const { createCompletion } = require('onpolicy');
       createCompletion(${ASK}).then((answer) => console.log(answer.choices[0].message.content));`,
      'cjs',
    );
    expect(outcome).toMatchObject({ code: 0, signal: null, stdout: `${ANSWER}\n` });
  });
});

describe('restricted hosts', () => {
  it.each([
    [['--disallow-code-generation-from-strings'], `new Function('return 1')`, 'EvalError'],
    [['--jitless', '--no-expose-wasm'], `new WebAssembly.Module(new Uint8Array())`, 'ReferenceError'],
  ])('%s, as under a strict policy', async (nodeFlags, forbidden, error) => {
    const outcome = await runProgram(
      `import { createCompletion } from 'onpolicy';
       try { ${forbidden}; throw new Error('allowed'); } catch (error) { if (error.name !== '${error}') throw error; }
       console.log((await createCompletion(${ASK})).choices[0].message.content);`,
      'mjs',
      { nodeFlags },
    );
    expect(outcome).toEqual({ ...CLEAN, stdout: `${ANSWER}\n` });
  });
});
