/** A service -> a running HTTP server of Node. */
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { OnpolicyError } from '../../../errors.ts';
import {
  type Complete,
  checkArguments,
  fault,
  type ServeOptions,
  throwFaults,
  withDefaults,
} from '../../../protocol/index.ts';
import { isLoopback } from './auth.ts';
import { RequestHandler } from './handler.ts';
import { type Servable, withTokens } from './handler-options.ts';
import { createListener } from './node.ts';

/** A running server. */
export type Server = {
  /** Its URL, for example `http://127.0.0.1:8080`. */
  readonly url: string;
  /**
   * Refuses new requests, lets running ones finish for `graceMs`, then ends them with `CLOSED`. The service stays open. Can be called
   * twice.
   */
  close(): Promise<void>;
};

/**
 * Serves a service over HTTP.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options, or a host that other machines can reach without tokens or `allowAnonymous`;
 *   `NETWORK_FAILED` if it cannot listen there
 */
export async function serve(service: Servable, options: ServeOptions = {}): Promise<Server> {
  const { port, host, graceMs, ...handlerOptions } = checkServeOptions(options);
  const handler = new RequestHandler(service, withTokens(handlerOptions));
  const server = http.createServer(createListener((request) => handler.handle(request)));
  Object.assign(server, { httpAllowHalfOpen: true }); // a client that has closed its side may still read
  const listening = await listen(server, port, host);
  void handler.resumeBatches();
  let closed: Promise<void> | null = null;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${listening.port}`,
    close: () => (closed ??= shut(server, handler, graceMs)),
  };
}

/** Returns the options of a server with their defaults. The handler checks its own options. */
export function checkServeOptions(options: ServeOptions): Complete['ServeOptions'] {
  const settings = withDefaults('ServeOptions', checkArguments('ServeOptions', options));
  const { host, tokens, allowAnonymous } = settings;
  if (!isLoopback(host) && tokens.length === 0 && !allowAnonymous)
    throwFaults([
      fault(['tokens'], 'conflict', `at least one token, or allowAnonymous, for the host ${host}`, tokens),
    ]);
  return settings;
}

function listen(server: http.Server, port: number, host: string): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) =>
      reject(
        new OnpolicyError('NETWORK_FAILED', `cannot listen on ${host}:${port}: ${cause.message}`, { cause }),
      ),
    );
    server.listen(port, host, () => resolve(server.address() as AddressInfo));
  });
}

async function shut(server: http.Server, handler: RequestHandler, graceMs: number): Promise<void> {
  const stopped = new Promise<void>((resolve) => server.close(() => resolve()));
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, graceMs);
  });
  await Promise.race([Promise.all([handler.drain(), handler.closeBatches()]), late]);
  clearTimeout(timer);
  handler.abort();
  server.closeIdleConnections();
  const cut = setTimeout(() => server.closeAllConnections(), LINGER_MS);
  await stopped;
  clearTimeout(cut);
}

/** Milliseconds that clients get to read the last response before connections are closed. */
const LINGER_MS = 500;
