/** `onpolicy serve`: options -> an HTTP server, until it is interrupted. */
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import { serve as serveRuntime } from '../../index.ts';
import { command, flag, number, readFile, text, texts, wrongUsage } from './arguments.ts';
import { CONFIG, readConfig } from './config-file.ts';
import { COMMON, MMPROJ, openRuntime } from './model-arguments.ts';
import { SERVE_FLAGS, withFlags } from './serve-flags.ts';
import { interrupted, print, printJson, type Terminal } from './terminal.ts';

/** Serves until the process is interrupted, or `signal` fires. */
export const serve = command({
  name: 'serve',
  about: 'answers over HTTP, as OpenAI, vLLM, Anthropic and Ollama do. More in docs/serving.md',
  options: {
    port: number('0: a free one (default: 8080)'),
    host: text('H', 'the address it listens on (default: 127.0.0.1)'),
    token: texts('T', 'who may ask; may be repeated'),
    'token-file': text('FILE', 'the same, a token on each line'),
    'allow-anonymous': flag('other machines need no token'),
    model: texts('M', 'a model to list; the first is the default; may be repeated'),
    mmproj: MMPROJ,
    ...SERVE_FLAGS,
    'no-page': flag('no chat page at /'),
    'access-log': text('FILE', 'a JSON line for each request; - is the output'),
    config: CONFIG,
    ...COMMON,
  },
  async run({ options }, terminal, signal) {
    const config = await readConfig(options.config);
    const given = [...options.token, ...(await readTokens(options['token-file']))];
    const tokens = [...(config.server.tokens ?? []), ...given];
    const [model, ...others] = options.model;
    const flagged = withFlags(config.runtime, options, options.model);
    await using runtime = await openRuntime(
      { ...options, model: others.length > 0 ? undefined : model, runtime: flagged },
      terminal,
    );
    await using log = await openLog(options['access-log'], terminal);
    const server = await serveRuntime(runtime, {
      ...config.server,
      port: options.port ?? config.server.port ?? 8080,
      ...(options.host === undefined ? {} : { host: options.host }),
      tokens,
      page: !options['no-page'] && (config.server.page ?? true),
      models: [...(config.server.models ?? []), ...options.model],
      ...(options['allow-anonymous'] ? { allowAnonymous: true } : {}),
      accessLog: log.write,
    });
    if (options.json) printJson(terminal, { url: server.url });
    else
      print(terminal, `serving ${runtime.servedModels().join(', ')} at ${server.url}; press Ctrl+C to end`);
    await interrupted(signal);
    await server.close();
  },
});

type AccessLog = AsyncDisposable & { readonly write: (entry: object) => void };

/** Opens a file for JSON lines; `-` is standard output. */
async function openLog(file: string | undefined, terminal: Terminal): Promise<AccessLog> {
  const nothing = async () => {};
  if (file === undefined) return { write: () => {}, [Symbol.asyncDispose]: nothing };
  if (file === '-')
    return { write: (entry) => print(terminal, JSON.stringify(entry)), [Symbol.asyncDispose]: nothing };
  const stream = createWriteStream(file, { flags: 'a' });
  await once(stream, 'open').catch((cause: Error) => {
    throw wrongUsage(`--access-log: cannot write ${file}: ${cause.message}`);
  });
  stream.on('error', ({ message }) => terminal.errors.write(`--access-log: ${message}\n`));
  return {
    write: (entry) => stream.write(`${JSON.stringify(entry)}\n`),
    [Symbol.asyncDispose]: async () => {
      stream.end();
      await finished(stream).catch(() => {}); // the error was written to the terminal
    },
  };
}

/** Reads tokens from a file, one per line. Unlike arguments they are not visible in the process list. */
async function readTokens(file: string | undefined): Promise<string[]> {
  if (file === undefined) return [];
  const lines = (await readFile('--token-file', file)).toString().split('\n');
  const tokens = lines.map((line) => line.trim()).filter((line) => line !== '');
  if (tokens.length === 0)
    throw wrongUsage(`--token-file: expected a token on each line, ${file} holds none`);
  return tokens;
}
