/** Command lines -> what the CLI prints, its exit code and its errors. */
import { once } from 'node:events';
import fs from 'node:fs';
import { PassThrough, Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import manifest from '../../../package.json' with { type: 'json' };
import { report } from '../../../src/apps/cli/report.ts';
import { CacheFiles } from '../../../src/models/prompt-files/cache-files.ts';
import { partsAt } from '../../../src/models/prompt-files/names.ts';
import { makeRun } from '../../rl/report/made-run.ts';
import { closeAll, newHome, open } from '../../rl/store/homes.ts';
import { command } from './terminal.ts';

async function madeHome() {
  const { runtime, store, home } = await open();
  const { id } = await runtime.models.create({ base_model: './tiny.gguf', name: 'adder' });
  await makeRun(store, id, { steps: 6, groups: 6, perGroup: 2, tokens: 3 });
  await closeAll();
  return { id, home };
}

describe('onpolicy', () => {
  it('helps on one screen, and about each command', async () => {
    for (const words of [[], ['help'], ['--help'], ['-h']]) {
      const { exitCode, output } = await command(words);
      expect(exitCode).toBe(0);
      const lines = output.trimEnd().split('\n');
      expect(lines.length).toBeLessThanOrEqual(24);
      for (const line of lines) expect(line.length).toBeLessThanOrEqual(110);
    }
    for (const words of [
      ['models', '--help'],
      ['help', 'models'],
      ['models', '-h'],
    ]) {
      const { exitCode, output } = await command(words);
      expect(exitCode).toBe(0);
      expect(output).toMatch(/^Usage: (onpolicy )?models/);
      expect(output).toContain('--after <ID>');
      expect(output).not.toContain('--port');
    }
  });

  it('says its version', async () => {
    expect(await command(['--version'])).toMatchObject({ exitCode: 0, output: `${manifest.version}\n` });
  });

  it.each([
    [['sing'], /unknown command 'sing'/],
    [['complet'], /^onpolicy: unknown command 'complet', did you mean complete\?\n$/],
    [['models', '--colour'], /--colour.*"onpolicy help models" shows/],
    [['models', '--limt', '3'], /unknown option '--limt', did you mean --limit\?\n$/],
    [['models', '--limit', 'many'], /--limit: expected a number, got "many"/],
    [['models', 'rename', 'x'], /MODEL|no model|expected list, show/],
    [['checkpoints'], /missing required argument 'model'/],
    [['report'], /missing required argument 'model'/],
    [['serve', 'now'], /too many arguments/],
    [['serve', '--token-file', './none'], /--token-file: cannot read .\/none/],
    [['serve', '--config', './none'], /--config: cannot read .\/none/],
    [['serve', '--access-log', './none/x'], /--access-log: cannot write .\/none/],
    [['caches', 'show'], /caches: expected list or delete, got show/],
    [['caches', 'delete'], /caches delete: expected either an id or --all/],
    [['caches', 'delete', 'a', '--all'], /caches delete: expected either an id or --all/],
    [['caches', 'delete', 'a'], /there are no caches a in/],
    [['pull'], /missing required argument 'uri'/],
    [['pull', 'hf:a/b:Q8_0', '--offline'], /hf:a\/b:Q8_0 is not in the local folder/],
    [['downloads', 'rename'], /expected list, delete or verify, got rename/],
    [['complete'], /expected a prompt/],
    [['transcribe'], /missing required argument 'sound'/],
    [['transcribe', 'a', 'b'], /too many arguments/],
    [['transcribe', './none.wav'], /transcribe: cannot read .\/none.wav/],
    [['bench', '--sequences', 'x'], /expected integers/],
    [['bench', '--synthetic', '--model', 'm.gguf'], /--synthetic: expected no --model/],
  ])('says what is wrong with %j', async (words, message) => {
    const { exitCode, output, errors } = await command([...words, '--home', newHome()]);
    expect(exitCode).toBeGreaterThan(0);
    expect(output).toBe('');
    expect(errors).toMatch(message);
    expect(errors.trimEnd().split('\n')).toHaveLength(1); // no stack
  });

  it('lists and deletes caches of prompts', async () => {
    const home = newHome();
    const ids = ['a', 'b', 'c'].map((letter) => letter.repeat(64));
    const files = new CacheFiles(home, () => {});
    const [part] = partsAt('', Int32Array.of(1, 2), [2], false);
    const use = { budget: 1e9, usedMs: 1e12 };
    for (const id of ids) await files.write({ id, model: 'm.gguf' }, part!, new Uint8Array(2 ** 20), use);
    const list = async (): Promise<string[]> => {
      const { output } = await command(['caches', '--json', '--home', home]);
      return (JSON.parse(output) as { id: string }[]).map(({ id }) => id).toSorted();
    };
    const { output } = await command(['caches', '--home', home]);
    expect(output).toMatch(
      /^id +model +files +size +last used\n(.{12} {2}m\.gguf +1 +2 MiB +2001-09-09T01:46:.*\n){3}$/,
    );
    expect(await list()).toEqual(ids);
    expect((await command(['caches', 'delete', 'bbb', '--home', home])).exitCode).toBe(0);
    expect(await list()).toEqual([ids[0], ids[2]]);
    expect((await command(['caches', 'delete', '--all', '--home', home])).exitCode).toBe(0);
    expect(await list()).toEqual([]);
  });

  it('registers, lists, shows and deletes models', async () => {
    const home = ['--home', newHome()];
    const created = await command(['models', 'create', 'onpolicy-tiny', '--name', 'first', ...home]);
    const model = JSON.parse(created.output);
    expect(model).toMatchObject({ base_model: 'onpolicy-tiny', name: 'first' });
    expect((await command(['models', ...home])).output).toMatch(
      new RegExp(`^id +name +step +base model\n${model.id} +first +0 +onpolicy-tiny\n$`),
    );
    expect(JSON.parse((await command(['models', 'list', '--json', ...home])).output).data).toEqual([model]);
    expect(JSON.parse((await command(['models', 'show', 'first', ...home])).output)).toEqual(model);
    const twice = await command(['models', 'create', 'onpolicy-tiny', '--name', 'first', '--json', ...home]);
    expect(twice.exitCode).toBe(1);
    expect(JSON.parse(twice.errors)).toMatchObject({ error: { code: 'CONFLICT' } });
    expect(JSON.parse((await command(['models', 'delete', 'first', ...home])).output)).toMatchObject({
      model_id: model.id,
      deleted_checkpoints: 0,
    });
    expect((await command(['models', 'show', 'first', ...home])).exitCode).toBe(1);
  });

  it('lists, deletes and prunes checkpoints', async () => {
    const { home } = await madeHome();
    const at = (...words: string[]) => command(['checkpoints', 'adder', ...words, '--home', home]);
    const listed = await at('--limit', '2');
    expect(listed.output).toMatch(/^step +train\/reward .*\n6 .*\n5 .*\nmore: --after [0-9a-f-]{36}\n$/);
    expect(JSON.parse((await at('list', '--json', '--order', 'asc')).output).data[0].step).toBe(1);
    expect((await at('--limit', '101')).exitCode).toBe(2);
    expect(JSON.parse((await at('delete', '5', '77')).output)).toEqual({
      deleted_count: 1,
      not_found_steps: [77],
    });
    expect((await at('delete', 'five')).exitCode).toBe(2);
    expect(JSON.parse((await at('prune', '--keep', '2', '--goal', 'min')).output)).toMatchObject({
      deleted_count: 2,
    });
    expect((await at('prune')).errors).toContain('keep');
  });

  it('writes reports, metrics and trajectories', async () => {
    const { id, home } = await madeHome();
    const file = `${newHome()}.html`;
    const at = (...words: string[]) => command(['report', 'adder', ...words, '--home', home]);
    expect(await at('--out', file)).toMatchObject({ exitCode: 0, output: `${file}\n` });
    expect(fs.readFileSync(file, 'utf8')).toContain(id);
    expect(JSON.parse((await at('--out', file, '--json')).output)).toEqual({
      file,
      bytes: fs.statSync(file).size,
    });
    expect((await at('--csv')).output.split('\r\n')[0]).toMatch(/^step,created,source,.*train\/reward/);
    expect(await at('--compare', id, '--out', file)).toMatchObject({ exitCode: 0 });
    expect(await at('--compare', 'nobody', '--out', file)).toMatchObject({ exitCode: 1 });
    const lines = (await at('--split', 'train')).output.trim().split('\n');
    expect(lines.map((line) => JSON.parse(line).group)).toEqual([0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
    expect((await command(['report', 'nobody', '--home', home])).exitCode).toBe(1);
  });

  it('serves the report of a run that another process makes, as it is then', async () => {
    const { runtime, home } = await open();
    const { id } = await runtime.models.create({ base_model: './tiny.gguf', name: 'adder' });
    const failure = { type: 'TIMEOUT', message: 'too slow' };
    const [output, errors] = [new PassThrough(), new PassThrough()];
    const stop = new AbortController();
    const terminal = { input: Readable.from([]), output, errors };
    const served = report(['adder', '--port', '0', '--home', home], terminal, stop.signal);
    await once(output, 'readable');
    const url = String(output.read()).trim();
    expect(await (await fetch(url)).text()).toContain('"splits":[]');
    await runtime.models.log(id, { trajectory_groups: [{ trajectories: [], exceptions: [failure] }] });
    expect(await (await fetch(url)).text()).toContain('"split":"val"');
    stop.abort();
    await served;
  });
});
