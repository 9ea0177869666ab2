/** A request -> a server's response with an unread body, by Node's own client or a given `fetch`. */
import http from 'node:http';
import https from 'node:https';
import { urlToHttpOptions } from 'node:url';
import { partsOf } from '../message-parts.ts';

export type HttpRequest = {
  /** Path below the server's base URL, with its query. */
  readonly path: string;
  readonly method: string;
  /** JSON text, or bytes whose type is in the headers. */
  readonly body: string | Uint8Array<ArrayBuffer> | undefined;
  /** Headers of this request, with names in lower case. They are added to those of the client. */
  readonly headers?: Headers | undefined;
};

export type SentRequest = {
  /** Rejects with the network's error, or with the reason of {@link SentRequest.stop}. */
  readonly response: Promise<HttpResponse>;
  /** Ends the request and the reading of its response. */
  readonly stop: (reason: Error) => void;
};

/** A response whose headers have arrived. */
export type HttpResponse = {
  readonly status: number;
  /** A header by its name in lower case; null if missing. */
  readonly header: (name: string) => string | null;
  /** Can be read once. Leaving the loop closes the connection. */
  readonly body: AsyncIterable<Uint8Array>;
};

/** Sends requests to one server. A redirect is a failure: it could leak the token to another server. */
export type HttpClient = {
  readonly send: (request: HttpRequest) => SentRequest;
  /** Closes its idle connections. */
  readonly close: () => void;
};

/** Idle connections are closed before the server does it (often after 5 seconds), which could lose a request. */
const IDLE_MS = 4000;

/** Headers of every request, with names in lower case. */
type Headers = Readonly<Record<string, string>>;

const JSON_BODY: Headers = { 'content-type': 'application/json' };

/** Creates a client on Node's own HTTP module. It is several times faster than `fetch` and sets no time limits. */
export function nodeClient(baseUrl: string, { 'content-length': _ours, ...headers }: Headers): HttpClient {
  const url = new URL(baseUrl);
  const { protocol, hostname, port, auth } = urlToHttpOptions(url);
  const { Agent, request: open } = protocol === 'https:' ? https : http;
  const agent = new Agent({ keepAlive: true, timeout: IDLE_MS });
  const basePath = url.pathname.replace(/\/$/, '');
  return {
    send: ({ path, method, body, headers: own }) => {
      const hasLength = body !== undefined || method === 'POST';
      const sent = {
        ...(typeof body === 'string' ? JSON_BODY : {}),
        ...headers,
        ...own,
        ...(hasLength ? { 'content-length': Buffer.byteLength(body ?? '') } : {}),
      };
      const request = open({ hostname, port, auth, agent, path: basePath + path, method, headers: sent });
      let running: http.ClientRequest | http.IncomingMessage = request;
      const response = new Promise<HttpResponse>((resolve, reject) => {
        request.on('error', reject);
        request.on('response', (message) => {
          running = message;
          const status = message.statusCode!;
          if (status >= 300 && status < 400) request.destroy(new Error(`the server redirects (${status})`));
          else
            resolve({
              status,
              header: (name) => headerOf(message, name),
              body: partsOf(message, () => message.destroy()),
            });
        });
      });
      request.end(body);
      return { response, stop: (reason) => running.destroy(reason) };
    },
    close: () => agent.destroy(),
  };
}

function headerOf({ headers }: http.IncomingMessage, name: string): string | null {
  const value = headers[name];
  return typeof value === 'string' ? value : null; // no header that the client reads has several values
}

/** Creates a client that uses the caller's `fetch`. */
export function fetchClient(baseUrl: string, headers: Headers, fetch: typeof globalThis.fetch): HttpClient {
  return {
    send: ({ path, method, body, headers: own }) => {
      const controller = new AbortController();
      const { signal } = controller;
      const sent = {
        ...(typeof body === 'string' ? JSON_BODY : {}),
        ...headers,
        ...own,
      };
      const content = body === undefined ? { headers: sent } : { headers: sent, body };
      const response = fetch(baseUrl + path, { method, ...content, signal, redirect: 'error' });
      return { response: response.then(toHttpResponse), stop: (reason) => controller.abort(reason) };
    },
    close: () => {},
  };
}

function toHttpResponse({ status, headers, body }: Response): HttpResponse {
  return { status, header: (name) => headers.get(name), body: body ?? emptyBody() };
}

async function* emptyBody(): AsyncGenerator<Uint8Array> {}

export async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  return UTF8.decode(parts.length === 1 ? parts[0] : Buffer.concat(parts));
}

const UTF8 = new TextDecoder(); // shared: its construction takes as long as the rest of a response
