/** A request and its response as the endpoints see them, independent of the server. */

import type { ErrorCode, OnpolicyError } from '../../../errors.ts';
import { CODE_HEADER, type ErrorForm, toErrorBody } from '../../../protocol/index.ts';
import type { EventStream } from './event-stream.ts';

export type WireRequest = {
  readonly method: string;
  readonly url: URL;
  /** Returns a header by its name in lower case, or null if it is missing. */
  readonly header: (name: string) => string | null;
  readonly body: WireBody;
  /** IP address of the client. Undefined if the server does not know it. */
  readonly address: string | undefined;
  /** Calls back when the client disconnects before the response is complete. Returns a function that unsubscribes. */
  readonly onLeave: (callback: () => void) => () => void;
};

export type WireBody = {
  /** Passes each part to `onPart` as it arrives. Rejects if the body breaks off, or with the error that `onPart` throws. */
  readonly read: (onPart: (part: Uint8Array) => void) => Promise<void>;
  /** Returns an iterator over the parts. Must not be used together with `read`. */
  readonly parts: () => AsyncIterator<Uint8Array>;
  /** Discards the rest of the body. */
  readonly stop: () => void;
};

export type WireResponse = {
  readonly status: number;
  /** Headers, with names in lower case. */
  readonly headers: Record<string, string>;
  readonly body: string | EventStream;
};

export function json(body: unknown, status = 200, headers: Record<string, string> = {}): WireResponse {
  return { status, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) };
}

export function text(body: string): WireResponse {
  return { status: 200, headers: { 'content-type': 'text/plain; charset=utf-8' }, body };
}

/** Codes of temporary errors. For all other codes a header tells clients that a retry is useless. */
const PASSING: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'BACKEND_FAILED',
  'CLOSED',
  'CONFLICT',
  'NETWORK_FAILED',
  'OUT_OF_MEMORY',
  'OVERLOADED',
  'STORE_FAILED',
  'TIMEOUT',
]);

export function errorResponse(error: OnpolicyError, form: ErrorForm): WireResponse {
  const { status, body } = toErrorBody(error, form);
  const headers: Record<string, string> = { [CODE_HEADER]: error.code };
  if (status === 401) headers['www-authenticate'] = 'Bearer';
  if (!PASSING.has(error.code)) headers['x-should-retry'] = 'false';
  if (status === 503 || status === 429)
    headers['retry-after'] = String(Math.ceil((error.retryAfterMs ?? 1000) / 1000));
  if (status === 408 || status === 413) headers['connection'] = 'close'; // the rest of the body is not read
  return json(body, status, headers);
}
