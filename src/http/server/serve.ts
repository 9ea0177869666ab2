/** A service -> a running HTTP server of Node. */
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { OnpolicyError } from '../../errors.ts';
import { atTheDoor, describe } from '../../protocol/index.ts';
import { isCount, wrongOption } from '../options.ts';
import { isLoopback } from './auth.ts';
import { RequestHandler } from './handler.ts';
import type { HandlerOptions, Servable } from './handler-options.ts';
import { createListener } from './node.ts';

/** Options of {@link serve}. */
export type ServeOptions = HandlerOptions & {
  /** Default 0: any free port. */
  readonly port?: number;
  /** Host name or address to listen at. Default `127.0.0.1`: this machine only. */
  readonly host?: string;
  /** Milliseconds that `close()` lets running requests finish before it ends them. Default 10,000. */
  readonly graceMs?: number;
};

/** A running server. */
export type Server = {
  /** Its URL, for example `http://127.0.0.1:8080`. */
  readonly url: string;
  /**
   * Refuses further requests, lets the running ones finish for `graceMs`, then ends them with `CLOSED`. The service stays
   * open. Can be called twice.
   */
  close(): Promise<void>;
};

/**
 * Serves a service over HTTP.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options, and for a host that other machines can reach without tokens
 *   and without `allowAnonymous`; `NETWORK_FAILED` if it cannot listen there
 */
export async function serve(service: Servable, options: ServeOptions = {}): Promise<Server> {
  const { port, host, graceMs, handlerOptions } = checkServeOptions(options);
  const handler = new RequestHandler(service, handlerOptions);
  const server = http.createServer(createListener((request) => handler.handle(request)));
  const listening = await listen(server, port, host);
  let closed: Promise<void> | null = null;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${listening.port}`,
    close: () => (closed ??= shut(server, handler, graceMs)),
  };
}

/** The options of a server with their defaults. Those of its handler are checked by the handler. */
export function checkServeOptions(options: ServeOptions): {
  readonly port: number;
  readonly host: string;
  readonly graceMs: number;
  readonly handlerOptions: HandlerOptions;
} {
  if (typeof options !== 'object' || options === null) wrongOption('options', 'an object', describe(options));
  return atTheDoor(options, () => {
    const { port = 0, host = '127.0.0.1', graceMs = 10_000, ...handlerOptions } = options;
    if (!isCount(port) || port > 65_535) wrongOption('port', 'an integer from 0 to 65535', describe(port));
    if (typeof host !== 'string' || !HOST.test(host))
      wrongOption('host', 'a name or an address', describe(host));
    if (!isCount(graceMs) || graceMs > LONGEST_MS)
      wrongOption('graceMs', `an integer from 0 to ${LONGEST_MS}`, describe(graceMs));
    const { tokens, allowAnonymous } = handlerOptions;
    if (!isLoopback(host) && !(Array.isArray(tokens) && tokens.length > 0) && !allowAnonymous)
      wrongOption('tokens', `at least one token, or allowAnonymous, for the host ${host}`, 'none');
    return { port, host, graceMs, handlerOptions };
  });
}

/** A name as DNS has it, an IPv4 or an IPv6 address. */
const HOST = /^[\w.:%-]{1,253}$/;
/** Longest time that a timer can wait. */
const LONGEST_MS = 2 ** 31 - 1;

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

async function shut(server: http.Server, handler: RequestHandler, graceMs: number): Promise<void> {
  const stopped = new Promise<void>((resolve) => server.close(() => resolve()));
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, graceMs);
  });
  await Promise.race([handler.drain(), late]);
  clearTimeout(timer);
  handler.abort();
  server.closeIdleConnections();
  const cut = setTimeout(() => server.closeAllConnections(), LINGER_MS);
  await stopped;
  clearTimeout(cut);
}

/** Milliseconds that clients get to read the last response before connections are closed. */
const LINGER_MS = 500;
