/** A service -> a server of Node's own that speaks the wire. */
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { OnpolicyError } from '../errors.ts';
import { isLoopback } from './auth.ts';
import { createWire } from './handler.ts';
import { createListener } from './node.ts';
import { type HandlerOptions, isCount, type Servable, wrongOption } from './options.ts';

/** Options of {@link serve}. */
export type ServeOptions = HandlerOptions & {
  /** Default 0: any that is free. */
  readonly port?: number;
  /** Name or address to listen at. Default `127.0.0.1`: this machine only. */
  readonly host?: string;
  /** How long `close()` lets running requests finish before it ends them. Default 10,000. */
  readonly graceMs?: number;
};

/** A server that runs. */
export type Server = {
  /** Where it is, for example `http://127.0.0.1:8080`. */
  readonly url: string;
  /**
   * Takes no further requests, lets the running ones finish for a while, then ends them with `CLOSED`. The service stays
   * open. Closing twice is fine.
   */
  close(): Promise<void>;
};

/**
 * Serves a service over HTTP.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options, also for a host that other machines can reach when there are
 *   no tokens and no `allowAnonymous`; `NETWORK_FAILED` when it cannot listen there
 */
export async function serve(service: Servable, options: ServeOptions = {}): Promise<Server> {
  const { port = 0, host = '127.0.0.1', graceMs = 10_000, ...handlerOptions } = options;
  if (!isCount(port) || port > 65_535) wrongOption('port', 'an integer from 0 to 65535', String(port));
  if (typeof host !== 'string' || host === '') wrongOption('host', 'a name or an address', String(host));
  if (!isCount(graceMs)) wrongOption('graceMs', 'an integer from 0 up', String(graceMs));
  const wire = createWire(service, handlerOptions);
  if (!isLoopback(host) && !handlerOptions.tokens?.length && !handlerOptions.allowAnonymous)
    wrongOption('tokens', `at least one token, or allowAnonymous, for the host ${host}`, 'none');
  const server = http.createServer(createListener(wire.handle));
  const listening = await listen(server, port, host);
  let closed: Promise<void> | null = null;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${listening.port}`,
    close: () => (closed ??= shut(server, wire, graceMs)),
  };
}

function listen(server: http.Server, port: number, host: string): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) =>
      reject(
        new OnpolicyError('NETWORK_FAILED', `cannot listen at ${host}:${port}: ${cause.message}`, { cause }),
      ),
    );
    server.listen(port, host, () => resolve(server.address() as AddressInfo));
  });
}

async function shut(
  server: http.Server,
  wire: ReturnType<typeof createWire>,
  graceMs: number,
): Promise<void> {
  const stopped = new Promise<void>((resolve) => server.close(() => resolve()));
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, graceMs);
  });
  await Promise.race([wire.drain(), late]);
  clearTimeout(timer);
  wire.abort();
  server.closeIdleConnections();
  const cut = setTimeout(() => server.closeAllConnections(), LAST_WORDS_MS);
  await stopped;
  clearTimeout(cut);
}

/** How long a client that was just told of the end may take to read it. */
const LAST_WORDS_MS = 500;
