/** Programs that do not clean up: they still end, with the right code, and never by a crash. */
import { describe, expect, it } from 'vitest';
import { runProgram } from './program.ts';

/** A request that would run for a long time. */
const LONG = `{ messages: [{ role: 'user', content: 'Tell me a story.' }], ignore_eos: true, n: 8 }`;

const CLEAN = { code: 0, signal: null, stderr: '' };

describe('a process that uses the package', () => {
  it('ends by itself after an answer, without close()', async () => {
    const outcome = await runProgram(`
      import { createCompletion } from 'onpolicy';
      const answer = await createCompletion({
        messages: [{ role: 'user', content: 'What is the capital of Peru?' }],
        temperature: 0,
      });
      console.log(answer.choices[0].message.content);`);
    expect(outcome).toEqual({ ...CLEAN, stdout: 'The capital of Peru is Lima.\n' });
  });

  it('ends by itself when it leaves a stream half read', async () => {
    const outcome = await runProgram(`
      import { createCompletion } from 'onpolicy';
      for await (const chunk of await createCompletion({ ...${LONG}, stream: true })) break;
      console.log('left');`);
    expect(outcome).toEqual({ ...CLEAN, stdout: 'left\n' });
  });

  it('ends by itself when it never reads a stream that it opened', async () => {
    const outcome = await runProgram(`
      import { createCompletion } from 'onpolicy';
      await createCompletion({ ...${LONG}, stream: true, max_completion_tokens: 50 });
      console.log('opened');`);
    expect(outcome).toEqual({ ...CLEAN, stdout: 'opened\n' });
  });

  it('ends by itself when it opens a runtime and does nothing', async () => {
    const outcome = await runProgram(`
      import { createRuntime } from 'onpolicy';
      await createRuntime();
      console.log('opened');`);
    expect(outcome).toEqual({ ...CLEAN, stdout: 'opened\n' });
  });

  it.each([
    [
      'in the middle of generation',
      `setTimeout(() => process.exit(7), 300); await createCompletion(${LONG});`,
    ],
    ['while the model is being loaded', `createCompletion(${LONG}); setImmediate(() => process.exit(7));`],
    [
      'between two chunks',
      `for await (const _ of await createCompletion({ ...${LONG}, stream: true })) process.exit(7);`,
    ],
    [
      'while it closes',
      `const runtime = await createRuntime();
       runtime.createCompletion(${LONG}).catch(() => {});
       setTimeout(() => { runtime.close(); process.exit(7); }, 300);`,
    ],
  ])('survives process.exit %s', async (_, body) => {
    const outcome = await runProgram(`import { createCompletion, createRuntime } from 'onpolicy'; ${body}`);
    expect(outcome).toEqual({ code: 7, signal: null, stdout: '', stderr: '' });
  });

  it('survives process.exit at any moment of a load, a step and a close', async () => {
    const program = (delayMs: number): string => `
      import { createRuntime } from 'onpolicy';
      const runtime = await createRuntime();
      runtime.createCompletion(${LONG}).catch(() => {});
      setTimeout(() => { ${delayMs % 2 ? 'runtime.close();' : ''} process.exit(7); }, ${delayMs});`;
    for (let delayMs = 150; delayMs < 350; delayMs += 13)
      expect(await runProgram(program(delayMs)), `after ${delayMs} ms`).toEqual({
        code: 7,
        signal: null,
        stdout: '',
        stderr: '',
      });
  });

  it('reports an exception thrown in the middle of generation as any other', async () => {
    const outcome = await runProgram(`
      import { createCompletion } from 'onpolicy';
      setTimeout(() => { throw new Error('from the host'); }, 300);
      await createCompletion(${LONG});`);
    expect(outcome).toMatchObject({ code: 1, signal: null });
    expect(outcome.stderr).toContain('from the host');
  });

  it('ends at once on SIGTERM in the middle of generation', async () => {
    const outcome = await runProgram(`
      import { createCompletion } from 'onpolicy';
      setTimeout(() => process.kill(process.pid, 'SIGTERM'), 300);
      await createCompletion(${LONG});`);
    expect(outcome).toEqual({ code: null, signal: 'SIGTERM', stdout: '', stderr: '' });
  });
});

describe('rejections', () => {
  it('reach the caller and nobody else', async () => {
    const outcome = await runProgram(`
      import { createCompletion, createRuntime } from 'onpolicy';
      process.on('unhandledRejection', (error) => { console.log('unhandled', error); process.exitCode = 1; });
      const messages = [{ role: 'user', content: 'Tell me a story.' }];
      const codeOf = (promise) => promise.then(() => 'none', (error) => error.code);
      const read = async (stream) => { for await (const _ of stream); };

      await createCompletion({ messages, max_completion_tokens: 1 }); // loads the model, so that the time limits below meet a running request
      console.log(await codeOf(createCompletion({ messages, temperature: -1 })));
      console.log(await codeOf(createCompletion({ messages, model: 'no-such-file.gguf' })));
      console.log(await codeOf(createCompletion({ messages }, { signal: AbortSignal.abort() })));
      console.log(await codeOf(createCompletion({ messages, ignore_eos: true }, { signal: AbortSignal.timeout(100) })));

      const stream = await createCompletion({ messages, ignore_eos: true, stream: true }, { signal: AbortSignal.timeout(100) });
      console.log(await codeOf(read(stream)));
      await createCompletion({ messages, ignore_eos: true, stream: true }, { signal: AbortSignal.timeout(50) }); // nobody reads it

      const runtime = await createRuntime();
      const running = codeOf(runtime.createCompletion({ messages, ignore_eos: true, n: 4 }));
      await new Promise((resolve) => setTimeout(resolve, 200));
      await Promise.all([runtime.close(), runtime.close()]);
      console.log(await running);
      console.log(await codeOf(runtime.createCompletion({ messages })));
      await new Promise((resolve) => setTimeout(resolve, 100));`);
    expect(outcome).toEqual({
      ...CLEAN,
      stdout: 'INVALID_REQUEST\nMODEL_NOT_FOUND\nABORTED\nABORTED\nABORTED\nCLOSED\nCLOSED\n',
    });
  });
});
