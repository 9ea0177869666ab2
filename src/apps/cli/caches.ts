/** `onpolicy caches`: caches of prompts in the home folder, listed or deleted. */
import { mib } from '../../common/index.ts';
import { command, flag, wrongUsage } from './arguments.ts';
import { COMMON, openRuntime } from './model-arguments.ts';
import { printResult } from './terminal.ts';

/** Lists caches, or deletes those whose id is or begins with the argument, or all of them with `--all`. */
export const caches = command({
  name: 'caches',
  words: '[action] [id]',
  about: 'prompt caches on disk: list (default), delete ID, delete --all',
  options: { all: flag('delete: all of them'), ...COMMON },
  async run({ options, names }, terminal) {
    const [action = 'list', id] = names;
    const wrong = (message: string): Error => wrongUsage(message, 'onpolicy caches');
    await using runtime = await openRuntime(options, terminal);
    const records = await runtime.diskCaches.list();
    if (action === 'delete') {
      if ((id === undefined) !== options.all) throw wrong('caches delete: expected either an id or --all');
      if (id === undefined) return await runtime.diskCaches.delete();
      const found = records.filter((record) => record.id.startsWith(id));
      if (found.length > 1) throw wrong(`caches delete: ${id} is the beginning of ${found.length} ids`);
      return await runtime.diskCaches.delete(found[0]?.id ?? id);
    }
    if (action !== 'list') throw wrong(`caches: expected list or delete, got ${action}`);
    printResult(terminal, options.json, records, [
      ['id', 'model', 'files', 'size', 'last used'],
      ...records.map(({ id, model, files, bytes, used_at }) => [
        id.slice(0, 12),
        model,
        String(files),
        mib(bytes),
        new Date(1000 * used_at).toISOString(),
      ]),
    ]);
  },
});
