/** What a caller passes to `connect` -> checked settings of a client. */
import http from 'node:http';
import { isJsonObject } from '../../protocol/index.ts';
import { COUNT, COUNT_OR_NULL, checkOptions, FUNCTION, type OptionCheck, wrongOption } from '../options.ts';

/** Options of {@link connect}. */
export type ConnectOptions = {
  /** The server's URL, for example `http://127.0.0.1:8080`; it may end in `/v1`. */
  readonly baseUrl: string;
  /** Sent as `Authorization: Bearer <apiKey>`. */
  readonly apiKey?: string;
  /** Further headers of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Most milliseconds until the response is complete; of a stream, until its headers. null: no limit. Default 600,000. */
  readonly timeoutMs?: number | null;
  /** Most retries of a call that is safe to repeat. Default 2. */
  readonly maxRetries?: number;
  /** Milliseconds between two polls of a training job. Default 500. */
  readonly pollMs?: number;
  /** Replaces Node's own client, for example to use a proxy. */
  readonly fetch?: typeof globalThis.fetch;
};

/** The same after the check. */
export type ClientSettings = Required<Omit<ConnectOptions, 'apiKey' | 'fetch'>> & {
  readonly apiKey: string | null;
  readonly fetch: typeof globalThis.fetch | null;
};

const DEFAULTS = {
  headers: {},
  timeoutMs: 600_000,
  maxRetries: 2,
  pollMs: 500,
  apiKey: null,
  fetch: null,
} as const;

const CHECKS: Readonly<Record<keyof ConnectOptions, OptionCheck>> = {
  baseUrl: ['an http or https URL', isHttpUrl],
  apiKey: ['a text that a header can hold', (value) => isHeader('authorization', value)],
  headers: [
    'an object of texts that headers can hold',
    (value) => isJsonObject(value) && Object.entries(value).every(([name, text]) => isHeader(name, text)),
  ],
  timeoutMs: COUNT_OR_NULL,
  maxRetries: COUNT,
  pollMs: COUNT,
  fetch: FUNCTION,
};

function isHeader(name: string, value: unknown): boolean {
  if (typeof value !== 'string') return false;
  try {
    http.validateHeaderName(name);
    http.validateHeaderValue(name, value);
    return true;
  } catch {
    return false;
  }
}

function isHttpUrl(value: unknown): boolean {
  return typeof value === 'string' && /^https?:\/\/[^/]/.test(value) && URL.canParse(value);
}

/** Fills defaults in. Throws `INVALID_REQUEST` for an unknown option or a wrong value. */
export function checkConnectOptions(options: ConnectOptions): ClientSettings {
  const given = checkOptions(options, CHECKS, 'apiKey');
  if (given.baseUrl === undefined) wrongOption('baseUrl', CHECKS.baseUrl[0], 'nothing');
  const baseUrl = given.baseUrl.replace(/\/+$/, '').replace(/\/v1$/, '');
  return { ...DEFAULTS, ...given, baseUrl };
}
