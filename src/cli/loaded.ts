/** `onpolicy pull` and `onpolicy ps`: models on this disk, and in the memory of a server. */
import { OnpolicyError } from '../errors.ts';
import type { ResidentModel } from '../index.ts';
import { readArguments, wrongUsage } from './arguments.ts';
import { COMMON, openRuntime } from './model-arguments.ts';
import { print, printJson, printTable, type Terminal } from './terminal.ts';

const MIB = 2 ** 20;

/** Downloads models. */
export async function pull(words: readonly string[], terminal: Terminal): Promise<void> {
  const { options, names } = readArguments(words, COMMON);
  if (names.length === 0) throw wrongUsage('pull: expected an hf: URI');
  let shown = -1;
  const onProgress = (model: string, fraction: number): void => {
    const percent = Math.floor(100 * fraction);
    if (percent === shown) return;
    shown = percent;
    terminal.errors.write(`\r${model}: ${percent} %${percent === 100 ? '\n' : ''}`);
  };
  await using runtime = await openRuntime({ ...options, onProgress }, terminal);
  const files: string[] = [];
  for (const name of names) files.push(await runtime.download(name));
  if (options.json) printJson(terminal, files);
  else for (const file of files) print(terminal, file);
}

/** Asks a server what it has loaded. */
export async function ps(words: readonly string[], terminal: Terminal): Promise<void> {
  const { options, names } = readArguments(words, { json: 'flag', url: 'text', token: 'text' });
  if (names.length > 0) throw wrongUsage(`ps: expected no words, got ${names.join(' ')}`);
  const models = await fetchLoaded(options.url ?? 'http://127.0.0.1:8080', options.token);
  if (options.json) return printJson(terminal, models);
  const size = (bytes: number | undefined): string =>
    bytes === undefined ? '' : `${Math.ceil(bytes / MIB)} MiB`;
  printTable(terminal, [
    ['model', 'state', 'requests', 'memory', 'weights', 'cache'],
    ...models.map(({ name, state, progress, requests, memory }) => [
      name,
      state === 'loading' ? `${state} ${Math.floor(100 * progress)} %` : state,
      String(requests),
      size(memory?.total),
      size(memory?.weights),
      size(memory?.cache),
    ]),
  ]);
}

async function fetchLoaded(url: string, token: string | undefined): Promise<readonly ResidentModel[]> {
  if (!/^https?:\/\//.test(url))
    throw wrongUsage(`--url: expected an address with http:// or https://, got ${url}`);
  const endpoint = `${url.replace(/\/+$/, '')}/v1/preview/loaded-models`;
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(endpoint, { headers }).catch((cause: Error) => {
    throw new OnpolicyError('NETWORK_FAILED', `no server answers at ${url}`, { cause });
  });
  const body = (await response.json().catch(() => null)) as {
    data?: ResidentModel[];
    detail?: string;
  } | null;
  if (response.ok && body?.data) return body.data;
  const why = typeof body?.detail === 'string' ? body.detail : `it answered ${response.status}`;
  throw new OnpolicyError('NETWORK_FAILED', `${url}: ${why}`);
}
