/** Requests and responses of Node's own server <-> those of the endpoints: without standard ones in between, which take longer. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { OnpolicyError } from '../errors.ts';
import type { EventStream } from './event-stream.ts';
import { json, type WireBody, type WireRequest, type WireResponse } from './exchange.ts';
import { CODE_HEADER, toErrorBody } from './wire-errors.ts';

/** What a server of Node's own calls for every request. `handle` never rejects. */
export function createListener(handle: (request: WireRequest) => Promise<WireResponse>): RequestListener {
  return (incoming, outgoing) => {
    outgoing.on('error', () => {}); // whoever leaves is heard of by `close`
    const request = fromIncoming(incoming, outgoing);
    if (request) void handle(request).then((answer) => send(answer, outgoing));
    else void send(unreadable(), outgoing);
  };
}

/** Null when it is no request, for example for its Host header. */
function fromIncoming(incoming: IncomingMessage, outgoing: ServerResponse): WireRequest | null {
  const { headers, socket } = incoming;
  const url = toUrl(`http://${headers.host ?? 'localhost'}${incoming.url}`);
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

/** Null also for a host that is hidden behind a user's name. */
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
    read: (take) =>
      new Promise((resolve, reject) => {
        let missing = Number(incoming.headers['content-length'] ?? Number.POSITIVE_INFINITY);
        incoming.on('data', (part: Uint8Array) => {
          try {
            take(part);
          } catch (error) {
            reject(error);
          }
          missing -= part.length;
          if (missing === 0) resolve(); // the end is told of later
        });
        incoming.once('end', resolve);
        incoming.once('error', reject);
        incoming.once('close', () => {
          if (!incoming.complete) reject(new Error('the client went away'));
        });
      }),
    stop: () => {
      incoming.removeAllListeners('data');
      incoming.resume(); // what still comes is thrown away: an answer is read only by who could send all
    },
  };
}

async function send({ status, headers, body }: WireResponse, outgoing: ServerResponse): Promise<void> {
  if (typeof body !== 'string') {
    outgoing.writeHead(status, headers);
    return await sendEvents(body, outgoing);
  }
  outgoing.writeHead(
    status,
    status === 204 ? headers : { ...headers, 'content-length': Buffer.byteLength(body) },
  );
  outgoing.end(body);
}

/** As fast as they are read. The head goes out at once: the client deals with it while the first event is made. */
async function sendEvents(events: EventStream, outgoing: ServerResponse): Promise<void> {
  events.onCut(() => outgoing.destroy());
  outgoing.once('close', () => events.leave());
  outgoing.flushHeaders();
  for (let text = await events.read(); text !== null; text = await events.read())
    if (!outgoing.write(text) && !outgoing.destroyed) await writable(outgoing);
  outgoing.end();
}

/** Resolves when more can be written, or nobody is there to read it. */
function writable(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      outgoing.off('drain', done).off('close', done);
      resolve();
    };
    outgoing.on('drain', done).on('close', done);
  });
}

function unreadable(): WireResponse {
  const error = new OnpolicyError('INVALID_REQUEST', 'the request cannot be read');
  const { status, body } = toErrorBody(error, 'completion');
  return json(body, status, { [CODE_HEADER]: error.code });
}
