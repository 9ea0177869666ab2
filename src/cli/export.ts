/** `onpolicy export`: a model with its adapters -> a file or folder of it. */
import type { ModelExportRequest } from '../protocol/index.ts';
import { readArguments, wrongUsage } from './arguments.ts';
import { COMMON, openRuntime } from './model-arguments.ts';
import { print, printJson, type Terminal } from './terminal.ts';

const MIB = 2 ** 20;

/** Writes it, and says where and how much. */
export async function exportModel(words: readonly string[], terminal: Terminal): Promise<void> {
  const { options, names } = readArguments(words, {
    ...COMMON,
    to: 'text',
    type: 'text',
    format: 'text',
    adapter: 'texts',
    overwrite: 'flag',
  });
  const [model, ...others] = names;
  const { to, type, format, adapter: files, overwrite } = options;
  if (model === undefined || others.length > 0) throw wrongUsage('export: expected one model');
  if (to === undefined) throw wrongUsage('export: expected --to and a path');
  await using runtime = await openRuntime(options, terminal);
  const made = await runtime.models.export({
    model,
    to,
    adapters: files.map((file) => ({ file })),
    overwrite,
    ...(type === undefined ? {} : { type: type as ModelExportRequest['type'] }), // checked by the runtime
    ...(format === undefined ? {} : { format: format as ModelExportRequest['format'] }),
  });
  if (options.json) return printJson(terminal, made);
  print(terminal, `${made.path}: ${Math.ceil(made.bytes / MIB)} MiB, with ${made.adapters} adapters`);
}
