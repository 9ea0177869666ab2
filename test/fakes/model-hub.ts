/** Repositories -> a hub on this machine that lists and serves their files as that of the `hf:` scheme does, for tests. */
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';

/** A hub that runs. */
export type ModelHub = {
  readonly endpoint: string;
  /** What it was asked. */
  readonly asked: { readonly url: string; readonly authorization: string | undefined }[];
  close(): void;
};

/** Starts one. `repositories`: `owner/name` -> path of a file -> its bytes. */
export async function openModelHub(
  repositories: Readonly<Record<string, Readonly<Record<string, Buffer>>>>,
): Promise<ModelHub> {
  const asked: ModelHub['asked'] = [];
  const server = http.createServer((request, response) => {
    const { pathname } = new URL(request.url!, 'http://hub');
    asked.push({ url: pathname, authorization: request.headers.authorization });
    const [, listed] = /^\/api\/models\/([^/]+\/[^/]+)\/revision\//.exec(pathname) ?? [];
    const [, repository, file] = /^\/([^/]+\/[^/]+)\/resolve\/[^/]+\/(.+)$/.exec(pathname) ?? [];
    const files = repositories[listed ?? repository ?? ''];
    if (files && listed) {
      const siblings = Object.keys(files).map((rfilename) => ({ rfilename }));
      return void response.writeHead(200).end(JSON.stringify({ siblings }));
    }
    const bytes = files?.[file ?? ''];
    if (!bytes) return void response.writeHead(404).end();
    const [, from = '0', to = String(bytes.length - 1)] =
      /bytes=(\d+)-(\d+)?/.exec(request.headers.range ?? '') ?? [];
    const body = bytes.subarray(Number(from), Number(to) + 1);
    response.writeHead(request.headers.range ? 206 : 200, {
      'content-length': body.length,
      'accept-ranges': 'bytes',
      ...(request.headers.range ? { 'content-range': `bytes ${from}-${to}/${bytes.length}` } : {}),
    });
    response.end(request.method === 'HEAD' ? undefined : body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return { endpoint, asked, close: () => void server.close() };
}
