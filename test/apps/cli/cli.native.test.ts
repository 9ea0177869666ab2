/** Commands of the CLI with the embedded model -> what they print. */
import { once } from 'node:events';
import fs from 'node:fs/promises';
import path from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { run } from '../../../src/apps/cli/run.ts';
import { serve } from '../../../src/apps/cli/serve.ts';
import { newHome } from '../../rl/store/homes.ts';
import { command } from './terminal.ts';

const QUESTION = 'What is the capital of Peru?';

describe('onpolicy', () => {
  it('answers a prompt from the command line or the input', async () => {
    const settings = ['--temperature', '0', '--home', newHome()];
    const answer = await command(['complete', QUESTION, ...settings]);
    expect(answer).toMatchObject({ exitCode: 0, output: 'The capital of Peru is Lima.\n' });
    expect((await command(['complete', ...settings], `${QUESTION}\n`)).output).toBe(answer.output);
    const whole = JSON.parse(
      (await command(['complete', '--json', '--max-tokens', '2', ...settings], QUESTION)).output,
    );
    expect(whole).toMatchObject({ object: 'chat.completion', usage: { completion_tokens: 2 } });
    expect((await command(['complete', QUESTION, '--model', '/no/such.gguf'])).exitCode).toBe(1);
  });

  it('holds a conversation', async () => {
    const { exitCode, output } = await command(
      ['chat', '--temperature', '0', '--system', 'You are helpful.'],
      `My name is Omar.\n\nWhat is my name?\n`,
    );
    expect(exitCode).toBe(0);
    expect(output).toContain('Omar');
    expect(output.trimEnd().split('\n').length).toBe(2);
  });

  it('loads the model of a conversation before the first prompt, and names it', async () => {
    const watched = Object.assign(new PassThrough(), { isTTY: true, columns: 80 });
    const words = ['chat', '--home', newHome()];
    expect(await run(words, { input: Readable.from([]), output: new PassThrough(), errors: watched })).toBe(
      0,
    );
    const shown = String(watched.read());
    expect(shown).toMatch(/loading {2}[█░]+ {2}onpolicy-tiny/);
    expect(shown).toContain('onpolicy-tiny, F16, context of 1024 tokens; /help lists the commands\n');
  });

  it('ranks and scores texts, or the lines of its input', async () => {
    const home = ['--home', newHome()];
    const ranked = await command(['rerank', QUESTION, '--top-n', '1', ...home], 'Lima\n\nMadrid\r\n');
    expect(ranked).toMatchObject({
      exitCode: 0,
      output: expect.stringMatching(/^0\.\d{4} {2}(Lima|Madrid)\n$/),
    });
    const words = ['score', QUESTION, 'Lima', 'Madrid', ...home];
    expect((await command(words)).output).toMatch(/^0\.\d{4} {2}Lima\n0\.\d{4} {2}Madrid\n$/);
    const { data } = JSON.parse((await command([...words, '--json'])).output);
    expect(data.map(({ index }: { index: number }) => index)).toEqual([0, 1]);
    expect((await command(['rerank', ...home])).exitCode).toBe(2);
    const labelled = await command(['classify', 'a', ...home]);
    expect(labelled).toMatchObject({ exitCode: 1, errors: expect.stringContaining('embedding model') });
  });

  it('inspects a file without loading it', async () => {
    const file = path.resolve(import.meta.dirname, '../../../models/onpolicy-tiny.gguf');
    const { exitCode, output } = await command(['inspect', file, '--context', '512', '--sequences', '4']);
    expect(exitCode).toBe(0);
    expect(output).toContain('architecture   llama');
    expect(output).toMatch(/chat template +\d+ characters/);
    const json = JSON.parse((await command(['inspect', file, '--json', '--context', '512'])).output);
    expect(json).toMatchObject({ architecture: 'llama', contextLength: 1024, placement: { gpuLayers: 0 } });
    expect(json.memory.total).toBe(json.memory.weights + json.memory.cache + json.memory.compute);
    expect((await command(['inspect', '/no/such.gguf'])).exitCode).toBe(1);
    expect((await command(['inspect'])).exitCode).toBe(2);
  });

  it('writes a model in another type', async () => {
    const to = path.join(newHome(), '..', `exported-${process.pid}.gguf`);
    const words = ['export', 'onpolicy-tiny', '--to', to, '--home', newHome()];
    try {
      const { exitCode, output } = await command([...words, '--type', 'q8_0']);
      expect(exitCode).toBe(0);
      expect(output).toMatch(/exported-\d+\.gguf: \d+ MiB, with 0 adapters/);
      expect((await command(words)).exitCode).toBe(1); // it exists
      expect((await command([...words, '--type', 'q9'])).exitCode).toBe(2);
      const asked = await command(['complete', QUESTION, '--temperature', '0', '--model', to]);
      expect(asked).toMatchObject({ exitCode: 0, output: 'The capital of Peru is Lima.\n' });
    } finally {
      await fs.rm(to, { force: true });
    }
    expect((await command(['export', 'onpolicy-tiny'])).exitCode).toBe(2);
  });

  it('measures this machine', async () => {
    const { output } = await command(['bench', '--sequences', '1,2', '--json']);
    expect(JSON.parse(output)).toMatchObject([
      { sequences: 1, tokens_per_second: expect.any(Number) },
      { sequences: 2, tokens_per_second: expect.any(Number) },
    ]);
  });

  it('says that the embedded model hides what several at once gain', async () => {
    const home = ['--home', newHome(), '--sequences', '1'];
    const shown = (await command(['bench', ...home])).output;
    expect(shown).toMatch(/^model +onpolicy-tiny\nkernels +\w+\nthreads +\d+\n\nat once +tokens\/s/);
    expect(shown).toMatch(/the embedded model: so small.*--model M/);
    expect((await command(['bench', '--model', 'onpolicy-tiny', ...home])).output).not.toMatch(/--model M/);
  });

  it('serves until it is interrupted', async () => {
    const [output, errors] = [new PassThrough(), new PassThrough()];
    const stop = new AbortController();
    const terminal = { input: Readable.from([]), output, errors };
    const file = path.join(newHome(), 'tokens');
    await fs.mkdir(path.dirname(file), { recursive: true });
    await fs.writeFile(file, '\nsecret\n');
    const served = serve(['--port', '0', '--token-file', file, '--json'], terminal, stop.signal);
    await once(output, 'readable');
    const { url } = JSON.parse(String(output.read()));
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer secret', 'content-type': 'application/json' },
      body: JSON.stringify({ messages: [{ role: 'user', content: QUESTION }], temperature: 0 }),
    });
    expect(await response.json()).toMatchObject({
      choices: [{ message: { content: 'The capital of Peru is Lima.' } }],
    });
    expect(await (await fetch(url, { headers: { accept: 'text/html' } })).text()).toContain(
      '<main id="chat">',
    );
    stop.abort();
    await served;
    await expect(fetch(url)).rejects.toThrow();
  });

  it('serves what flags say: names, limits, adapters, the cache', async () => {
    const [output, errors] = [new PassThrough(), new PassThrough()];
    const stop = new AbortController();
    const folder = newHome();
    await fs.mkdir(folder, { recursive: true });
    const adapter = path.join(folder, 'lora.gguf');
    await fs.writeFile(adapter, 'no adapter');
    const flags = [
      '--alias',
      'small=onpolicy-tiny',
      '--adapter',
      `legal=${adapter}`,
      '--context',
      '128',
      '--no-page',
    ];
    const served = serve(
      ['--port', '0', ...flags, '--cache-type', 'q8_0', '--max-waiting', '4', '--home', folder, '--json'],
      { input: Readable.from([]), output, errors },
      stop.signal,
    );
    await once(output, 'readable');
    const { url } = JSON.parse(String(output.read()));
    const names = (await (await fetch(`${url}/v1/models`)).json()) as { data: { id: string }[] };
    expect(names.data.map(({ id }) => id)).toEqual(['onpolicy-tiny', 'small', 'legal']);
    expect(await (await fetch(url, { headers: { accept: 'text/html' } })).text()).toBe('Ollama is running');
    const ask = async (model: string, max_tokens: number) => {
      const messages = [{ role: 'user', content: QUESTION }];
      const body = JSON.stringify({ model, messages, max_tokens });
      const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', body });
      return [response.status, await response.text()];
    };
    expect((await ask('small', 4))[0]).toBe(200);
    expect(await ask('small', 200)).toEqual([400, expect.stringMatching(/context holds 128/)]);
    expect(await ask('legal', 4)).toEqual([expect.any(Number), expect.stringMatching(/lora.gguf/)]);
    stop.abort();
    await served;
    for (const [words, message] of [
      [['--alias', 'small'], /--alias: expected NAME=MODEL, got "small"/],
      [['--adapter', 'a=b', '--model', 'x', '--model', 'y'], /--adapter: expected at most one --model/],
      [['--cache-type', 'q9'], /model.cacheType: expected "f32"/],
      [['--cpu-expert-layers', 'some'], /model.cpuExpertLayers: expected "all" or an integer >= 0/],
      [['--cpu-expert-layers', '-1'], /model.cpuExpertLayers: expected "all" or an integer >= 0/],
      [['--scheduling', 'none'], /scheduling: expected/],
    ] as const)
      expect((await command(['serve', '--port', '0', ...words])).errors).toMatch(message);
  });

  it('serves what a file configures, says what is loaded, and logs', async () => {
    const [output, errors] = [new PassThrough(), new PassThrough()];
    const stop = new AbortController();
    const folder = newHome();
    await fs.mkdir(folder, { recursive: true });
    const [config, log] = [path.join(folder, 'service.json'), path.join(folder, 'access.jsonl')];
    const runtime = { models: { small: { path: 'onpolicy-tiny', contextSize: 256 } }, maxLogprobs: 3 };
    await fs.writeFile(config, JSON.stringify({ runtime, server: { tokens: ['secret'], maxChoices: 2 } }));
    const served = serve(
      ['--port', '0', '--config', config, '--access-log', log, '--json'],
      { input: Readable.from([]), output, errors },
      stop.signal,
    );
    await once(output, 'readable');
    const { url } = JSON.parse(String(output.read()));
    const ask = (fields: object) =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: 'Bearer secret', 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'small', messages: [{ role: 'user', content: QUESTION }], ...fields }),
      });
    expect((await ask({})).status).toBe(200);
    expect((await ask({ n: 3 })).status).toBe(400);
    expect((await ask({ max_tokens: 257, truncate_prompt_tokens: 300 })).status).toBe(400);
    const loaded = await command(['ps', '--url', url, '--token', 'secret']);
    expect(loaded.output).toMatch(
      /^model +state +requests +memory +weights +cache\nonpolicy-tiny +ready +0 +\d+ MiB/,
    );
    expect(
      JSON.parse((await command(['ps', '--url', url, '--token', 'secret', '--json'])).output),
    ).toMatchObject([{ name: 'onpolicy-tiny', state: 'ready' }]);
    expect(await command(['ps', '--url', url])).toMatchObject({ exitCode: 1, output: '' });
    stop.abort();
    await served;
    const lines = (await fs.readFile(log, 'utf8')).trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line).status)).toEqual([200, 400, 400, 200, 200, 401]);
    expect((await command(['ps', '--url', url])).errors).toMatch(/no server answers/);
  });

  it.skipIf(process.platform !== 'linux')('closes its access log, also when it cannot serve', async () => {
    const folder = newHome();
    await fs.mkdir(folder, { recursive: true });
    const log = path.join(folder, 'access.jsonl');
    const terminal = { input: Readable.from([]), output: new PassThrough(), errors: new PassThrough() };
    const flags = ['--access-log', log, '--home', folder, '--port'];
    await serve([...flags, '0'], terminal, AbortSignal.abort());
    await expect(serve([...flags, '70000'], terminal)).rejects.toThrow(/port/);
    const handles = await fs.readdir('/proc/self/fd');
    const files = await Promise.all(handles.map((fd) => fs.readlink(`/proc/self/fd/${fd}`).catch(() => '')));
    expect(files).not.toContain(log);
  });

  it('downloads nothing that is there', async () => {
    const { output, exitCode } = await command(['pull', 'onpolicy-tiny', '--home', newHome()]);
    expect([exitCode, path.basename(output.trim())]).toEqual([0, 'onpolicy-tiny.gguf']);
  });
});
