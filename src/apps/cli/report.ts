/** `onpolicy report`: a run -> an HTML page, written or served while it grows, a table, or its logged lines. */
import { once } from 'node:events';
import fs from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { command, flag, number, text, wrongUsage } from './arguments.ts';
import { COMMON, findModel, openRuntime } from './model-arguments.ts';
import { interrupted, print, printJson, type Terminal } from './terminal.ts';

/**
 * Writes the page of a model's run, or with `--csv` its metrics and with `--split` its trajectories. With `--port` it serves the page until
 * the process is interrupted, or `signal` fires.
 */
export const report = command({
  name: 'report',
  words: '<model>',
  about: 'the run of a model as a page',
  options: {
    out: text('FILE', 'where the page goes (default: the id of the model)'),
    csv: flag('prints its metrics'),
    split: text('S', 'prints its trajectories of a split as JSON lines'),
    compare: text('M', 'with the curves of another model'),
    port: number('serves the page, and keeps it up to date'),
    ...COMMON,
  },
  async run({ options, names }, terminal, signal) {
    const [idOrName] = names as [string];
    await using runtime = await openRuntime(options, terminal);
    const model = await findModel(runtime, idOrName);
    if (options.csv) {
      for await (const line of runtime.runs.metricsCsv(model.id)) terminal.output.write(line);
    } else if (options.split !== undefined) {
      for await (const line of runtime.runs.trajectories(model.id, options.split))
        print(terminal, JSON.stringify(line));
    } else if (options.port !== undefined) {
      await servePage(
        () => runtime.report(model.id, { compare: options.compare }),
        options.port,
        terminal,
        signal,
      );
    } else {
      const html = await runtime.report(model.id, { compare: options.compare });
      const file = path.resolve(options.out ?? `${model.id}.html`);
      await fs.writeFile(file, html).catch((cause: Error) => {
        throw wrongUsage(`--out: cannot write ${file}: ${cause.message}`);
      });
      if (options.json) printJson(terminal, { file, bytes: Buffer.byteLength(html) });
      else print(terminal, file);
    }
  },
});

/** Answers each request with the current page of the run. Listens on this machine only. */
async function servePage(
  page: () => Promise<string>,
  port: number,
  terminal: Terminal,
  signal: AbortSignal | undefined,
): Promise<void> {
  const server = http.createServer((_, response) => {
    page().then(
      (html) => response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(html),
      (error: Error) => response.writeHead(500, { 'content-type': 'text/plain' }).end(error.message),
    );
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening').catch((cause: Error) => {
    throw wrongUsage(`--port: ${cause.message}`);
  });
  print(terminal, `http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  await interrupted(signal);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
