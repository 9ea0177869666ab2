/** A request -> a server's answer, whose body is still to be read: by Node's own client, or by a `fetch` that was given. */
import http from 'node:http';
import https from 'node:https';
import { urlToHttpOptions } from 'node:url';

/** A request as it goes out. */
export type Outgoing = {
  /** Below the server's base URL, with its query. */
  readonly path: string;
  readonly method: string;
  /** JSON text. */
  readonly body: string | undefined;
};

/** A request that is on its way. */
export type Sent = {
  /** Rejects with what the network said, or with the reason of {@link Sent.stop}. */
  readonly answer: Promise<Incoming>;
  /** Ends it, and the reading of its answer. */
  readonly stop: (reason: Error) => void;
};

/** An answer, once its headers are there. */
export type Incoming = {
  readonly status: number;
  /** A header by its name in lower case; null when there is none. */
  readonly header: (name: string) => string | null;
  /** To be read once. Leaving the loop closes the connection. */
  readonly body: AsyncIterable<Uint8Array>;
};

/** Makes requests of one server. A redirect is a failure: a redirected token would be seen by others. */
export type Sender = {
  readonly send: (request: Outgoing) => Sent;
  /** Closes the connections that it keeps. */
  readonly close: () => void;
};

/** Most bytes of an answer that wait for their reader before its connection is read no further. */
const READ_AHEAD_BYTES = 64 * 1024;

/** Idle connections are closed before servers do it, most of them after 5 seconds: what is sent meanwhile would be lost. */
const IDLE_MS = 4000;

/** Headers of every request, with names in lower case. */
type Headers = Readonly<Record<string, string>>;

const JSON_BODY: Headers = { 'content-type': 'application/json' };

/** Node's own client: in a fraction of the time that `fetch` takes, and without time limits of its own. */
export function nodeSender(baseUrl: string, { 'content-length': _ours, ...headers }: Headers): Sender {
  const url = new URL(baseUrl);
  const { protocol, hostname, port, auth } = urlToHttpOptions(url);
  const { Agent, request: open } = protocol === 'https:' ? https : http;
  const agent = new Agent({ keepAlive: true, timeout: IDLE_MS });
  const ownHeaders = {
    host: url.host,
    ...(auth ? { authorization: `Basic ${Buffer.from(auth).toString('base64')}` } : {}),
  };
  // As lists, which are taken as they are, where an object is read one by one.
  const bareHeaders = Object.entries({ ...ownHeaders, ...headers }).flat();
  const bodyHeaders = Object.entries({ ...ownHeaders, ...JSON_BODY, ...headers }).flat();
  const basePath = url.pathname.replace(/\/$/, '');
  return {
    send: ({ path, method, body }) => {
      const list = (body === undefined ? bareHeaders : bodyHeaders).slice();
      if (body !== undefined || method === 'POST')
        list.push('content-length', `${Buffer.byteLength(body ?? '')}`);
      const request = open({ hostname, port, agent, path: basePath + path, method, headers: list });
      let running: http.ClientRequest | http.IncomingMessage = request;
      const answer = new Promise<Incoming>((resolve, reject) => {
        request.on('error', reject);
        request.on('response', (response) => {
          running = response;
          const status = response.statusCode!;
          if (status >= 300 && status < 400) request.destroy(new Error(`the server redirects (${status})`));
          else resolve({ status, header: (name) => headerOf(response, name), body: partsOf(response) });
        });
      });
      request.end(body);
      return { answer, stop: (reason) => running.destroy(reason) };
    },
    close: () => agent.destroy(),
  };
}

/**
 * The parts of an answer as they come, for one reader who gets those that wait as one: in a fraction of the time that a
 * stream's own iterator takes.
 */
function partsOf(response: http.IncomingMessage): AsyncIterableIterator<Uint8Array> {
  let ready: Uint8Array[] = [];
  let readyBytes = 0;
  let isOver = false;
  let failure: unknown = null;
  let wake: (() => void) | null = null;
  const end = (error: unknown): void => {
    if (isOver) return;
    isOver = true;
    failure = error;
    wake?.();
  };
  response.on('data', (part: Uint8Array) => {
    ready.push(part);
    readyBytes += part.length;
    if (readyBytes > READ_AHEAD_BYTES) response.pause();
    wake?.();
  });
  response.on('end', () => end(null));
  response.on('error', end);
  response.on('close', () => end(new Error('the connection was closed')));
  return {
    async next() {
      while (ready.length === 0 && !isOver) {
        if (response.isPaused()) response.resume();
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        wake = null;
      }
      if (ready.length === 0 && failure !== null) throw failure;
      if (ready.length === 0) return { done: true, value: undefined };
      const value = ready.length === 1 ? ready[0]! : Buffer.concat(ready, readyBytes);
      ready = [];
      readyBytes = 0;
      return { done: false, value };
    },
    async return() {
      response.destroy();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

function headerOf({ headers }: http.IncomingMessage, name: string): string | null {
  const value = headers[name];
  return typeof value === 'string' ? value : null; // the names asked for are not among those that give lists
}

/** A `fetch` of the caller's. */
export function fetchSender(baseUrl: string, headers: Headers, fetch: typeof globalThis.fetch): Sender {
  return {
    send: ({ path, method, body }) => {
      const controller = new AbortController();
      const { signal } = controller;
      const content = body === undefined ? { headers } : { headers: { ...JSON_BODY, ...headers }, body };
      const answer = fetch(baseUrl + path, { method, ...content, signal, redirect: 'error' });
      return { answer: answer.then(toIncoming), stop: (reason) => controller.abort(reason) };
    },
    close: () => {},
  };
}

function toIncoming({ status, headers, body }: Response): Incoming {
  return { status, header: (name) => headers.get(name), body: body ?? emptyBody() };
}

async function* emptyBody(): AsyncGenerator<Uint8Array> {}

/** The whole of a body as text. */
export async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  return UTF8.decode(parts.length === 1 ? parts[0] : Buffer.concat(parts));
}

const UTF8 = new TextDecoder(); // making one takes as long as all else that an answer needs
