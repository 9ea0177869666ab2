/** `onpolicy report`: a run -> an HTML page, a table, or its logged lines. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { readArguments, wrongUsage } from './arguments.ts';
import { COMMON, findModel, openRuntime } from './model-arguments.ts';
import { print, printJson, type Terminal } from './terminal.ts';

/** Writes the page of a model's run, or with `--csv` its metrics and with `--split` its trajectories. */
export async function report(words: readonly string[], terminal: Terminal): Promise<void> {
  const { options, names } = readArguments(words, { ...COMMON, out: 'text', csv: 'flag', split: 'text' });
  const [idOrName] = names;
  if (idOrName === undefined || names.length > 1) throw wrongUsage('report: expected one model');
  await using runtime = await openRuntime(options, terminal);
  const model = await findModel(runtime, idOrName);
  if (options.csv) {
    for await (const line of runtime.runs.metricsCsv(model.id)) terminal.output.write(line);
  } else if (options.split !== undefined) {
    for await (const line of runtime.runs.trajectories(model.id, options.split))
      print(terminal, JSON.stringify(line));
  } else {
    const html = await runtime.report(model.id);
    const file = path.resolve(options.out ?? `${model.id}.html`);
    await fs.writeFile(file, html).catch((cause: Error) => {
      throw wrongUsage(`--out: cannot write ${file}: ${cause.message}`);
    });
    if (options.json) printJson(terminal, { file, bytes: Buffer.byteLength(html) });
    else print(terminal, file);
  }
}
