/** A call of a remote service -> its response, with headers, time limits, safe retries and the service's own errors. */

import { setTimeout as sleep } from 'node:timers/promises';
import { causeCodes, causes, neverSent, onAbort, parseJson } from '../../../common/index.ts';
import { abortedBy, failIfAborted, messageOf, OnpolicyError } from '../../../errors.ts';
import { CODE_HEADER, type ErrorForm, fromErrorBody } from '../../../protocol/index.ts';
import { PREVIEW } from '../../../protocol/service/index.ts';
import { limitTime } from '../time-limits.ts';
import type { ClientSettings } from './connect-options.ts';
import {
  fetchClient,
  type HttpClient,
  type HttpResponse,
  nodeClient,
  type SentRequest,
  textOf,
} from './http-client.ts';

export type RemoteCall = {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Path below the base URL, with its query. */
  readonly path: string;
  /** JSON text, or bytes whose type is in the headers. */
  readonly body?: string | Uint8Array<ArrayBuffer>;
  readonly signal?: AbortSignal | undefined;
  /** Headers of this call, with names in lower case. They are added to those of the client. */
  readonly headers?: Readonly<Record<string, string>>;
  /** True if a second call has no further effect. Such a call is retried after any network failure. */
  readonly isRepeatable: boolean;
  /** True if the time limit applies only until the headers arrive. Default false. */
  readonly isStream?: boolean;
};

/** A response whose body is read by the caller. */
export type OpenResponse = {
  readonly response: HttpResponse;
  /** Ends the response: the body's reader fails with `reason`. */
  readonly stop: (reason: OnpolicyError) => void;
  /** Returns the error to report for an error that reading the body threw. */
  readonly toError: (error: unknown) => OnpolicyError;
  /** Must be called when the body was read or is not needed. */
  readonly end: () => void;
};

/** Makes calls until it is closed. */
export class RetryingClient {
  readonly #options: ClientSettings;
  readonly #client: HttpClient;
  readonly #running = new Set<(reason: OnpolicyError) => void>(); // functions that end a call
  #isClosed = false;

  constructor(options: ClientSettings) {
    this.#options = options;
    const { baseUrl, fetch, apiKey, headers } = options;
    const all = {
      accept: 'application/json, text/event-stream',
      ...(apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }),
      ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
    };
    this.#client = fetch ? fetchClient(baseUrl, all, fetch) : nodeClient(baseUrl, all);
  }

  async json<T>(call: RemoteCall): Promise<T> {
    const text = await readAll(await this.open(call));
    try {
      return JSON.parse(text) as T;
    } catch (error) {
      throw new OnpolicyError('NETWORK_FAILED', `the server's answer is not JSON: ${messageOf(error)}`);
    }
  }

  /** Returns a response of status 200 to 299 as soon as its headers have arrived. */
  async open(call: RemoteCall): Promise<OpenResponse> {
    for (let attempt = 0; ; attempt++) {
      this.requireOpen();
      const failure = await this.#try(call);
      if ('response' in failure) return failure;
      if (attempt >= this.#options.maxRetries || !mayRetry(call, failure)) throw failure.error;
      await this.#pause(call, attempt, failure.error.retryAfterMs);
    }
  }

  /** Ends every running and later call with `CLOSED`. */
  close(): void {
    this.#isClosed = true;
    for (const stop of this.#running) stop(closedError());
    this.#client.close();
  }

  requireOpen(): void {
    if (this.#isClosed) throw closedError();
  }

  async #try(call: RemoteCall): Promise<OpenResponse | Failure> {
    const { signal, method, path, body, headers } = call;
    const { baseUrl, timeoutMs } = this.#options;
    failIfAborted(signal);
    let sent: SentRequest | null = null;
    let ended: OnpolicyError | null = null; // reason for which the client ended the call
    const stop = (reason: OnpolicyError): void => {
      ended ??= reason;
      sent?.stop(ended);
    };
    const aborting = onAbort(signal, () => stop(abortedBy(signal!)));
    const onLate = (): void =>
      stop(new OnpolicyError('TIMEOUT', `${method} ${path} took longer than ${timeoutMs} ms`));
    const stopClock = limitTime(timeoutMs, onLate);
    this.#running.add(stop);
    const end = (): void => {
      stopClock();
      aborting[Symbol.dispose]();
      this.#running.delete(stop);
    };
    const toError = (error: unknown): OnpolicyError => {
      if (ended) return ended;
      if (error instanceof OnpolicyError) return error;
      const late = causeCodes(error).some((code) => /^UND_ERR_(HEADERS|BODY)_TIMEOUT$/.test(code));
      const text = `${method} ${baseUrl}${path}: ${[error, ...causes(error)].map(messageOf).join(': ')}`;
      return new OnpolicyError(late ? 'TIMEOUT' : 'NETWORK_FAILED', text, { cause: error });
    };
    try {
      sent = this.#client.send({ path, method, body, headers });
      const response = await sent.response;
      if (call.isStream) stopClock();
      const { status } = response;
      if (status >= 200 && status < 300) return { response, toError, end, stop };
      const failure = await failureOf(response, path);
      end();
      return failure;
    } catch (error) {
      end();
      return { error: toError(error), wasSent: !neverSent(error), isBusy: false };
    }
  }

  /** Waits before the next attempt, a random time so that many clients do not retry at once. */
  async #pause({ signal }: RemoteCall, attempt: number, retryAfterMs: number | undefined): Promise<void> {
    const ms = retryAfterMs ?? Math.min(8000, 250 * 2 ** attempt) * Math.random();
    try {
      await sleep(ms, undefined, { ...(signal ? { signal } : {}) });
    } catch {
      throw abortedBy(signal!);
    }
  }
}

export async function readAll({ response, toError, end }: OpenResponse): Promise<string> {
  try {
    return await textOf(response.body);
  } catch (error) {
    throw toError(error);
  } finally {
    end();
  }
}

/** A failed attempt. */
type Failure = {
  readonly error: OnpolicyError;
  /** True if the server may have received the request. */
  readonly wasSent: boolean;
  readonly isBusy: boolean;
};

/** Longest wait that a server can ask for, in milliseconds. A call whose server asks for more fails without a retry. */
export const LONGEST_WAIT_MS = 30_000;

function mayRetry({ isRepeatable }: RemoteCall, { error, wasSent, isBusy }: Failure): boolean {
  if ((error.retryAfterMs ?? 0) > LONGEST_WAIT_MS) return false;
  if (isBusy) return true;
  return error.code === 'NETWORK_FAILED' && (isRepeatable || !wasSent);
}

async function failureOf({ status, header, body: content }: HttpResponse, path: string): Promise<Failure> {
  const text = await textOf(content).catch(() => '');
  const form: ErrorForm = path.startsWith(PREVIEW) ? 'preview' : 'completion';
  const code = header(CODE_HEADER);
  const body = parseJson(text, text);
  const seconds = Number(header('retry-after') ?? Number.NaN);
  const said = lacksEndpoint(status, code, body, form)
    ? new OnpolicyError('UNSUPPORTED', `the server has no endpoint ${path.split('?')[0]}`)
    : fromErrorBody(status, code, body, form);
  const error =
    seconds >= 0
      ? new OnpolicyError(said.code, said.message, { ...said, retryAfterMs: seconds * 1000 })
      : said;
  const isClosing = status === 503 && (error.code === 'NETWORK_FAILED' || error.code === 'CLOSED');
  return { error, wasSent: true, isBusy: status === 429 || isClosing };
}

/** Returns true if the response is that of a server without preview endpoints to an unknown path. */
function lacksEndpoint(status: number, code: string | null, body: unknown, form: ErrorForm): boolean {
  if (form !== 'preview') return false;
  if (code !== null) return code === 'NOT_FOUND' && !hasDetail(body);
  return status === 405 || status === 501 || (status === 404 && !hasDetail(body));
}

/** Returns true if the body has an error of a service. The text `Not Found` is what frameworks answer for an unknown path. */
function hasDetail(body: unknown): boolean {
  const detail = (body as { detail?: unknown } | null)?.detail;
  return typeof detail === 'string' && detail !== 'Not Found';
}

function closedError(): OnpolicyError {
  return new OnpolicyError('CLOSED', 'the client is closed');
}
