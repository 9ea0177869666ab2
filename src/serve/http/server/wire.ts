/** The shapes of the standard `Request` and `Response`, which any server can give and take without the cost of their classes. */

import type { ErrorCode, OnpolicyError } from '../../../errors.ts';
import { CODE_HEADER, type ErrorForm, toErrorBody } from '../../../protocol/index.ts';
import type { EventStream } from './event-stream.ts';

/** A request as endpoints read it, by the names of the standard `Request`, which is one. */
export type ServedRequest = Pick<Request, 'method' | 'url'> & {
  readonly headers: Pick<Headers, 'get'>;
  /** Parts in order, each as it arrives. Null if the request has no body. Iterating throws if it breaks off. */
  readonly body: AsyncIterable<Uint8Array> | null;
  /** Fires when the client disconnects before the response is complete. Takes one listener at a time. */
  readonly signal: {
    readonly aborted: boolean;
    addEventListener(type: 'abort', listener: () => void): void;
    removeEventListener(type: 'abort', listener: () => void): void;
  };
  /** IP address of the client. Absent if the server does not know it. */
  readonly address?: string | undefined;
};

/** A response as endpoints return it, by the names of the standard `Response`. Names of headers are in lower case. */
export type ServedResponse = Pick<Response, 'status'> & {
  readonly headers: Record<string, string>;
  readonly body: string | Uint8Array<ArrayBuffer> | EventStream;
};

export function json(body: unknown, status = 200, headers: Record<string, string> = {}): ServedResponse {
  return { status, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) };
}

export function bytes(body: Uint8Array<ArrayBuffer>, type: string): ServedResponse {
  return { status: 200, headers: { 'content-type': type }, body };
}

export function text(body: string): ServedResponse {
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

export function errorResponse(error: OnpolicyError, form: ErrorForm): ServedResponse {
  const { status, body } = toErrorBody(error, form);
  const headers: Record<string, string> = { [CODE_HEADER]: error.code };
  if (status === 401) headers['www-authenticate'] = 'Bearer';
  if (!PASSING.has(error.code)) headers['x-should-retry'] = 'false';
  if (status === 503 || status === 429)
    headers['retry-after'] = String(Math.ceil((error.retryAfterMs ?? 1000) / 1000));
  if (status === 408 || status === 413) headers['connection'] = 'close'; // the rest of the body is not read
  return json(body, status, headers);
}
