/** `onpolicy export`: a model with its adapters -> a file or folder of it. */
import { mib } from '../../common/index.ts';
import type { ModelExportRequest } from '../../protocol/index.ts';
import { command, flag, text, texts, wrongUsage } from './arguments.ts';
import { COMMON, openRuntime } from './model-arguments.ts';
import { print, printJson } from './terminal.ts';

/** Writes the model, and prints path and size. */
export const exportModel = command({
  name: 'export',
  words: '<model>',
  about: 'a model with its adapters merged, as a file or folder',
  options: {
    to: text('PATH', 'where it goes; needed'),
    type: text('T', 'of the weights, such as q8_0 or q4_k_m'),
    format: text('F', 'gguf, safetensors or peft'),
    adapter: texts('FILE', 'another adapter; may be repeated'),
    decisions: flag('as a decision file for llama.cpp'),
    overwrite: flag('replaces what is there'),
    ...COMMON,
  },
  async run({ options, names }, terminal) {
    const [model] = names as [string];
    const { to, type, format, adapter: files, decisions, overwrite } = options;
    if (to === undefined) throw wrongUsage('export: expected --to and a path', 'onpolicy export');
    await using runtime = await openRuntime(options, terminal);
    const made = await runtime.models.export({
      model,
      to,
      adapters: files.map((file) => ({ file })),
      decisions,
      overwrite,
      ...(type === undefined ? {} : { type: type as ModelExportRequest['type'] }), // checked by the runtime
      ...(format === undefined ? {} : { format: format as ModelExportRequest['format'] }),
    });
    if (options.json) return printJson(terminal, made);
    print(terminal, `${made.path}: ${mib(made.bytes)}, with ${made.adapters} adapters`);
  },
});
