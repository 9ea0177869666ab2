/** Requests and responses of Node's own server <-> those of the endpoints, without the slower standard `Request` and `Response`. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { OnpolicyError } from '../../../errors.ts';
import type { EventStream } from './event-stream.ts';
import { errorResponse, type WireBody, type WireRequest, type WireResponse } from './wire.ts';

/** The listener of a Node server. `handle` must not reject. */
export function createListener(handle: (request: WireRequest) => Promise<WireResponse>): RequestListener {
  return (incoming, outgoing) => {
    outgoing.on('error', () => {}); // `close` reports a client that disconnects
    const request = fromIncoming(incoming, outgoing);
    const signs = signHalfClosed(incoming, outgoing);
    if (request) void handle(request).then((answer) => send(answer, outgoing, signs));
    else {
      const error = new OnpolicyError('INVALID_REQUEST', 'the request cannot be read');
      void send(errorResponse(error, 'completion'), outgoing, signs);
    }
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

/** Returns null for an invalid request, for example with a wrong Host header. */
function fromIncoming(incoming: IncomingMessage, outgoing: ServerResponse): WireRequest | null {
  const { headers, socket } = incoming;
  const target = incoming.url ?? '/';
  // The absolute form names its host itself; a path may begin with two slashes.
  const url = toUrl(target.startsWith('/') ? `http://${headers.host ?? 'localhost'}${target}` : target);
  if (!url) return null;
  return {
    method: incoming.method ?? 'GET',
    url,
    header: (name) => headers[name]?.toString() ?? null,
    body: bodyOf(incoming),
    address: socket.remoteAddress,
    onLeave: (callback) => {
      const onClose = (): void => {
        if (!outgoing.writableFinished) callback();
      };
      outgoing.once('close', onClose);
      return () => outgoing.off('close', onClose);
    },
  };
}

/** Returns null for an invalid URL, and for one with a user name that hides the host. */
function toUrl(text: string): URL | null {
  try {
    const url = new URL(text);
    return url.username === '' && url.password === '' ? url : null;
  } catch {
    return null;
  }
}

function bodyOf(incoming: IncomingMessage): WireBody {
  return {
    read: (onPart) =>
      new Promise((resolve, reject) => {
        let missing = Number(incoming.headers['content-length'] ?? Number.POSITIVE_INFINITY);
        incoming.on('data', (part: Uint8Array) => {
          try {
            onPart(part);
          } catch (error) {
            reject(error);
          }
          missing -= part.length;
          if (missing === 0) resolve(); // before the event `end`
        });
        incoming.once('end', resolve);
        incoming.once('error', reject);
        incoming.once('close', () => {
          if (!incoming.complete) reject(new Error('the client went away'));
        });
      }),
    parts: () => incoming.iterator({ destroyOnReturn: false }),
    stop: () => {
      incoming.removeAllListeners('data');
      incoming.resume(); // discards the rest: a client reads the response only after it has sent everything
    },
  };
}

async function send(
  { status, headers, body }: WireResponse,
  outgoing: ServerResponse,
  signs: Signs,
): Promise<void> {
  if (typeof body !== 'string') {
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
  outgoing.once('close', () => events.leave());
  outgoing.flushHeaders();
  for (let part = await events.read(); part !== null; part = await events.read())
    if (!outgoing.write(part) && !outgoing.destroyed) await writable(outgoing);
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
