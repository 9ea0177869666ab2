/** Repositories -> a hub on this machine that lists and serves their files as that of the `hf:` scheme does, or badly, for tests. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';

/** A hub that runs. */
export type ModelHub = {
  readonly endpoint: string;
  /** Requests that the hub received. */
  readonly asked: {
    readonly url: string;
    readonly authorization: string | undefined;
    readonly range: string | undefined;
  }[];
  /** Current faults of the hub. */
  readonly faults: HubFaults;
  close(): void;
};

/** How a hub misbehaves. */
export type HubFaults = {
  /** Bytes of an answer until it breaks off. */
  cutAfter?: number | undefined;
  /** How often it does; default: always. */
  cuts?: number | undefined;
  /** Sends another first byte than the file has. */
  damages?: boolean;
  /** Sends whole files where a range is asked for. */
  ignoresRanges?: boolean;
  /** Milliseconds between halves of an answer. */
  slowMs?: number;
  /** Says that a file has so many bytes. */
  claims?: Readonly<Record<string, number>>;
  /** Answers everything with this. */
  status?: number;
};

/** Starts one. `repositories`: `owner/name` -> path of a file -> its bytes. */
export async function openModelHub(
  repositories: Readonly<Record<string, Readonly<Record<string, Buffer>>>>,
): Promise<ModelHub> {
  const asked: ModelHub['asked'] = [];
  const faults: HubFaults = {};
  const server = http.createServer((request, response) => {
    const { pathname } = new URL(request.url!, 'http://hub');
    asked.push({ url: pathname, authorization: request.headers.authorization, range: request.headers.range });
    if (faults.status !== undefined) return void response.writeHead(faults.status).end();
    const [, listed] = /^\/api\/models\/([^/]+\/[^/]+)\/revision\//.exec(pathname) ?? [];
    const [, repository, file] = /^\/([^/]+\/[^/]+)\/resolve\/[^/]+\/(.+)$/.exec(pathname) ?? [];
    const files = repositories[listed ?? repository ?? ''];
    if (files && listed) {
      const siblings = Object.entries(files).map(([rfilename, bytes]) => ({
        rfilename,
        size: faults.claims?.[rfilename] ?? bytes.length,
        lfs: { sha256: sha256(bytes) },
      }));
      return void response.writeHead(200).end(JSON.stringify({ siblings }));
    }
    const bytes = files?.[file ?? ''];
    if (!bytes) return void response.writeHead(404).end();
    const range = faults.ignoresRanges ? undefined : request.headers.range;
    const [, from = '0', last = String(bytes.length - 1)] = /bytes=(\d+)-(\d+)?/.exec(range ?? '') ?? [];
    const to = Math.min(Number(last), bytes.length - 1);
    const body = Buffer.from(bytes.subarray(Number(from), to + 1));
    if (faults.damages && from === '0') body[0]! ^= 1;
    response.writeHead(range ? 206 : 200, {
      'content-length': body.length,
      'accept-ranges': 'bytes',
      'x-linked-etag': `"${sha256(bytes)}"`,
      'x-linked-size': String(faults.claims?.[file!] ?? bytes.length),
      ...(range ? { 'content-range': `bytes ${from}-${to}/${bytes.length}` } : {}),
    });
    if (request.method === 'HEAD') return void response.end();
    const isCut = faults.cutAfter !== undefined && faults.cuts !== 0;
    if (isCut && faults.cuts !== undefined) faults.cuts -= 1;
    if (isCut) return void response.write(body.subarray(0, faults.cutAfter), () => response.destroy());
    if (faults.slowMs === undefined) return void response.end(body);
    response.write(body.subarray(0, body.length / 2));
    setTimeout(() => response.end(body.subarray(body.length / 2)), faults.slowMs);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return { endpoint, asked, faults, close };
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
