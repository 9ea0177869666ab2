/** What a caller gives to `connect` -> checked settings of a transport. */
import { isCount, wrongOption } from './options.ts';

/** Options of {@link connect}. */
export type ConnectOptions = {
  /** Where the server is, for example `http://127.0.0.1:8080`; a `/v1` at its end is fine. */
  readonly baseUrl: string;
  /** Sent as `Authorization: Bearer <apiKey>`. */
  readonly apiKey?: string;
  /** Further headers of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** How long an answer may take; of a stream: its beginning. null: as long as it needs. Default 600,000. */
  readonly timeoutMs?: number | null;
  /** How often a call is tried again, where that is safe. Default 2. */
  readonly maxRetries?: number;
  /** How often a training job is asked for its events. Default 500. */
  readonly pollMs?: number;
  /** Sends the requests another way than Node's own client, for example through a proxy. */
  readonly fetch?: typeof globalThis.fetch;
};

/** What calls are made with. */
export type TransportSettings = Required<Omit<ConnectOptions, 'apiKey' | 'fetch'>> & {
  readonly apiKey: string | null;
  readonly fetch: typeof globalThis.fetch | null;
};

const DEFAULTS = { headers: {}, timeoutMs: 600_000, maxRetries: 2, pollMs: 500 } as const;

const CHECKS: Readonly<Record<keyof ConnectOptions, readonly [string, (value: unknown) => boolean]>> = {
  baseUrl: ['an http or https URL', isHttpUrl],
  apiKey: ['a text', (value) => typeof value === 'string'],
  headers: ['an object of texts', (value) => typeof value === 'object' && value !== null],
  timeoutMs: ['an integer from 0 up, or null', (value) => value === null || isCount(value)],
  maxRetries: ['an integer from 0 up', isCount],
  pollMs: ['an integer from 0 up', isCount],
  fetch: ['a function', (value) => typeof value === 'function'],
};

function isHttpUrl(value: unknown): boolean {
  return typeof value === 'string' && /^https?:\/\/[^/]/.test(value) && URL.canParse(value);
}

/** Fills defaults in. Throws `INVALID_REQUEST` for an unknown option or a wrong value. */
export function checkConnectOptions(options: ConnectOptions): TransportSettings {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  for (const [name, value] of given) {
    const check = Object.hasOwn(CHECKS, name) ? CHECKS[name as keyof ConnectOptions] : undefined;
    if (!check) wrongOption(name, `one of ${Object.keys(CHECKS).join(', ')}`, 'an unknown option');
    if (!check[1](value)) wrongOption(name, check[0], name === 'apiKey' ? typeof value : String(value));
  }
  if (options.baseUrl === undefined) wrongOption('baseUrl', CHECKS.baseUrl[0], 'nothing');
  return {
    ...DEFAULTS,
    apiKey: null,
    fetch: null,
    ...Object.fromEntries(given),
    baseUrl: options.baseUrl.replace(/\/+$/, '').replace(/\/v1$/, ''),
  };
}
