/** `onpolicy ps`: models in the memory of a server. */
import { mib } from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';
import type { ResidentModel } from '../../index.ts';
import { METHODS } from '../../protocol/service/index.ts';
import { command, text, wrongUsage } from './arguments.ts';
import { JSON_FLAG } from './model-arguments.ts';
import { printResult } from './terminal.ts';

export const ps = command({
  name: 'ps',
  about: 'what a server has loaded',
  options: {
    url: text('U', 'the server (default: http://127.0.0.1:8080)'),
    token: text('T', 'its token'),
    ...JSON_FLAG,
  },
  async run({ options }, terminal) {
    const models = await fetchLoaded(options.url ?? 'http://127.0.0.1:8080', options.token);
    const size = (bytes: number | undefined): string => (bytes === undefined ? '' : mib(bytes));
    printResult(terminal, options.json, models, [
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
  },
});

async function fetchLoaded(url: string, token: string | undefined): Promise<readonly ResidentModel[]> {
  if (!/^https?:\/\//.test(url))
    throw wrongUsage(`--url: expected an address with http:// or https://, got ${url}`);
  const endpoint = url.replace(/\/+$/, '') + METHODS.loaded.http[1];
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
