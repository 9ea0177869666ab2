/** Requests of Node's own server -> the shape of a standard `Request`, and responses of that shape -> Node's server. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { partsOf } from '../message-parts.ts';
import type { EventStream } from './event-stream.ts';
import type { ServedRequest, ServedResponse } from './wire.ts';

/** The listener of a Node server. `handle` must not reject. */
export function createListener(handle: (request: ServedRequest) => Promise<ServedResponse>): RequestListener {
  return (incoming, outgoing) => {
    outgoing.on('error', () => {}); // `close` reports a client that disconnects
    const signs = signHalfClosed(incoming, outgoing);
    void handle(fromIncoming(incoming, outgoing)).then((answer) => send(answer, outgoing, signs));
  };
}

/** Sends an interim response, which clients skip, to a client that has closed its side. */
type Signs = { send: () => void };

/** Milliseconds between the first signs; each pause is twice as long as the one before. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 10_000;

/**
 * Sends signs of life to a client that has closed its side. Such a client may still read or may be gone, and only a failed write tells
 * which.
 */
function signHalfClosed(incoming: IncomingMessage, outgoing: ServerResponse): Signs {
  const isOld = incoming.httpVersion === '1.0';
  const signs: Signs = { send: () => (isOld ? null : outgoing.writeContinue()) };
  let timer: NodeJS.Timeout | undefined;
  const sign = (pause: number): void => {
    if (outgoing.writableEnded) return;
    signs.send();
    timer = setTimeout(() => sign(Math.min(2 * pause, LONGEST_PAUSE_MS)), pause).unref();
  };
  const ends = endsOf(incoming.socket);
  const onEnd = (): void => sign(FIRST_PAUSE_MS);
  ends.add(onEnd);
  outgoing.once('close', () => {
    clearTimeout(timer);
    ends.delete(onEnd);
  });
  return signs;
}

const waiting = new WeakMap<Socket, Set<() => void>>();

/**
 * Returns the callbacks for the time when the client closes its side of a socket. Pipelined requests share one listener, because Node warns
 * of more than ten.
 */
function endsOf(socket: Socket): Set<() => void> {
  let ends = waiting.get(socket);
  if (!ends) {
    const added = new Set<() => void>();
    socket.once('end', () => {
      for (const onEnd of added) onEnd();
    });
    waiting.set(socket, added);
    ends = added;
  }
  return ends;
}

/** Returns a request of Node's server in the shape of a standard one. */
function fromIncoming(incoming: IncomingMessage, outgoing: ServerResponse): ServedRequest {
  const { headers, socket, method = 'GET', url: target = '/' } = incoming;
  return {
    method,
    // The absolute form names its host itself; a path may begin with two slashes.
    url: target.startsWith('/') ? `http://${headers.host ?? 'localhost'}${target}` : target,
    headers: { get: (name) => headers[name]?.toString() ?? null },
    // The rest of a body is discarded, because a client reads the response only after it has sent everything.
    body: { [Symbol.asyncIterator]: () => partsOf(incoming, () => incoming.resume()) },
    address: socket.remoteAddress,
    signal: new LeaveSignal(outgoing),
  };
}

/** Fires when a connection closes before its response is complete. It costs a fraction of an `AbortSignal`. */
class LeaveSignal {
  readonly #outgoing: ServerResponse;
  #onClose: (() => void) | null = null;

  constructor(outgoing: ServerResponse) {
    this.#outgoing = outgoing;
  }

  get aborted(): boolean {
    return this.#outgoing.closed && !this.#outgoing.writableFinished;
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#onClose = () => {
      if (!this.#outgoing.writableFinished) listener();
    };
    this.#outgoing.once('close', this.#onClose);
  }

  removeEventListener(): void {
    if (this.#onClose) this.#outgoing.off('close', this.#onClose);
  }
}

async function send(
  { status, headers, body }: ServedResponse,
  outgoing: ServerResponse,
  signs: Signs,
): Promise<void> {
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) {
    outgoing.writeHead(status, headers);
    signs.send = () => void outgoing.write(body.idle);
    return await sendEvents(body, outgoing);
  }
  outgoing.writeHead(
    status,
    status === 204 || status === 304 ? headers : { ...headers, 'content-length': Buffer.byteLength(body) },
  );
  outgoing.end(body);
}

/** Sends events as fast as they are read. The headers are sent first, so that the client handles them while the first event is computed. */
async function sendEvents(events: EventStream, outgoing: ServerResponse): Promise<void> {
  events.onCut(() => outgoing.destroy());
  outgoing.once('close', () => void events.return());
  outgoing.flushHeaders();
  for (let part = await events.next(); !part.done; part = await events.next())
    if (!outgoing.write(part.value) && !outgoing.destroyed) await writable(outgoing);
  outgoing.end();
}

/** Resolves when more can be written or the connection is closed. */
function writable(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      outgoing.off('drain', done).off('close', done);
      resolve();
    };
    outgoing.on('drain', done).on('close', done);
  });
}
