/** `onpolicy pull` and `onpolicy downloads`: models of the hub -> files here, with progress; downloads listed, verified or deleted. */
import { mib } from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';
import { command, wrongUsage } from './arguments.ts';
import { COMMON, openRuntime } from './model-arguments.ts';
import { modelProgress } from './model-progress.ts';
import { print, printJson, printResult, untilInterrupted } from './terminal.ts';

/** Downloads models. Ctrl+C pauses: the same command continues. */
export const pull = command({
  name: 'pull',
  words: '<uri...>',
  about: 'downloads models: hf:owner/name, hf:owner/name:Q4_K_M, hf:owner/name/file.gguf',
  options: COMMON,
  async run({ options, names }, terminal, signal) {
    const work = async (stop: AbortSignal): Promise<void> => {
      await using runtime = await openRuntime({ ...options, onProgress: modelProgress(terminal) }, terminal);
      const files: string[] = [];
      for (const name of names) files.push(await runtime.download(name, { signal: stop }));
      if (options.json) printJson(terminal, files);
      else for (const file of files) print(terminal, file);
    };
    await untilInterrupted(work, 'paused; the same command continues', signal);
  },
});

export const downloads = command({
  name: 'downloads',
  words: '[action] [uri...]',
  about: 'what was downloaded: list (default), delete URI..., verify [URI...]: computes hashes again',
  options: COMMON,
  async run({ options, names }, terminal) {
    const [action = 'list', ...uris] = names;
    await using runtime = await openRuntime(options, terminal);
    if (action === 'list') {
      const found = await runtime.downloads.list();
      const rows = found.map(({ model, bytes, state }) => [model, mib(bytes), state]);
      const together = mib(found.reduce((sum, { bytes }) => sum + bytes, 0));
      const table = [['model', 'size', 'state'], ...rows, ['together', together]];
      return printResult(terminal, options.json, found, table);
    }
    if (action === 'verify') {
      const checks = [];
      for (const uri of uris.length === 0 ? [undefined] : uris)
        checks.push(...(await runtime.downloads.verify(uri)));
      const rows = checks.map(({ model, state }) => [model, state]);
      printResult(terminal, options.json, checks, [['model', 'state'], ...rows]);
      const damaged = checks.filter(({ state }) => state === 'damaged');
      if (damaged.length === 0) return;
      throw new OnpolicyError('MODEL_INVALID', `damaged: ${damaged.map(({ model }) => model).join(', ')}`);
    }
    if (action !== 'delete')
      throw wrongUsage(`downloads: expected list, delete or verify, got ${action}`, 'onpolicy downloads');
    if (uris.length === 0)
      throw wrongUsage('downloads delete: expected the URI of a download', 'onpolicy downloads');
    const freed: Record<string, number> = {};
    for (const uri of uris) freed[uri] = await runtime.downloads.delete(uri);
    if (options.json) return printJson(terminal, freed);
    for (const [uri, bytes] of Object.entries(freed)) print(terminal, `${uri}: ${mib(bytes)} freed`);
  },
});
