/** A request -> a server's answer, whose body is still to be read: by Node's own client, or by a `fetch` that was given. */
import http from 'node:http';
import https from 'node:https';

/** A request as it goes out. */
export type Outgoing = {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  /** Ends it, and the reading of its answer, with the signal's reason. */
  readonly signal: AbortSignal;
};

/** An answer, once its headers are there. */
export type Incoming = {
  readonly status: number;
  /** A header by its name in lower case; null when there is none. */
  readonly header: (name: string) => string | null;
  /** To be read once. Leaving the loop closes the connection. */
  readonly body: AsyncIterable<Uint8Array>;
};

/** Makes requests. A redirect is a failure: a redirected token would be seen by others. */
export type Sender = {
  /** Rejects with what the network said. */
  readonly send: (request: Outgoing) => Promise<Incoming>;
  /** Closes the connections that it keeps. */
  readonly close: () => void;
};

/** Idle connections are closed before servers do it, most of them after 5 seconds: what is sent meanwhile would be lost. */
const IDLE_MS = 4000;

/** Node's own client: in a fraction of the time that `fetch` takes, and without time limits of its own. */
export function nodeSender(): Sender {
  const options = { keepAlive: true, timeout: IDLE_MS };
  const plain = new http.Agent(options);
  const secure = new https.Agent(options);
  return {
    send: (outgoing) =>
      outgoing.url.startsWith('https:')
        ? sendBy(https.request, secure, outgoing)
        : sendBy(http.request, plain, outgoing),
    close: () => {
      plain.destroy();
      secure.destroy();
    },
  };
}

function sendBy(
  open: typeof http.request,
  agent: http.Agent,
  { url, method, headers, body, signal }: Outgoing,
): Promise<Incoming> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
    const request = open(url, { method, agent, headers: { ...headers, ...length } });
    let onAbort = (): unknown => request.destroy(signal.reason as Error);
    const abort = (): unknown => onAbort();
    signal.addEventListener('abort', abort, { once: true });
    request.once('close', () => signal.removeEventListener('abort', abort));
    request.on('error', reject);
    request.on('response', (response) => {
      onAbort = () => response.destroy(signal.reason as Error);
      const status = response.statusCode!;
      if (status >= 300 && status < 400) request.destroy(new Error(`the server redirects (${status})`));
      else resolve({ status, header: (name) => headerOf(response, name), body: response });
    });
    request.end(body);
  });
}

function headerOf({ headers }: http.IncomingMessage, name: string): string | null {
  const value = headers[name];
  return typeof value === 'string' ? value : null; // the names asked for are not among those that give lists
}

/** A `fetch` of the caller's. */
export function fetchSender(fetch: typeof globalThis.fetch): Sender {
  return {
    send: async ({ url, method, headers, body, signal }) => {
      const init = {
        method,
        headers,
        signal,
        redirect: 'error',
        ...(body === undefined ? {} : { body }),
      } as const;
      const response = await fetch(url, init);
      return {
        status: response.status,
        header: (name) => response.headers.get(name),
        body: response.body ?? emptyBody(),
      };
    },
    close: () => {},
  };
}

async function* emptyBody(): AsyncGenerator<Uint8Array> {}

/** The whole of a body as text. */
export async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const part of body) text += decoder.decode(part, { stream: true });
  return text + decoder.decode();
}
