/** What a caller gives to `createHandler` -> checked options with their defaults filled in. */

import type { EngineStats } from '../engine/index.ts';
import { OnpolicyError } from '../errors.ts';
import type { Completions, Service } from '../service.ts';

/** What a token allows: asking for completions, training, reading what is stored, and everything with deletion. */
export type Scope = 'complete' | 'train' | 'read' | 'admin';

/** A token, and what it allows. */
export type Token = {
  /** The secret that a client sends as `Authorization: Bearer <token>`. */
  readonly token: string;
  /** Default: all. `admin` stands for all. */
  readonly scopes?: readonly Scope[];
};

/** What a handler can serve: a whole service, or one that only answers requests; then the rest is `UNSUPPORTED`. */
export type Servable = Completions &
  Partial<Service> & {
    /** The page that shows how a model's training went, as HTML. */
    report?(modelId: string): Promise<string>;
    /** Numbers for `GET /metrics`. */
    stats?(): EngineStats;
  };

/** Options of {@link createHandler}. */
export type HandlerOptions = {
  /** Who may ask. None: only clients on this machine, without a token. */
  readonly tokens?: readonly (string | Token)[];
  /** Without tokens: lets clients on other machines in, too. Default false. */
  readonly allowAnonymous?: boolean;
  /** Path that the endpoints are mounted below, for example `/api`. Default: none. */
  readonly basePath?: string;
  /** Origins whose pages may call from a browser, or `*` for all. Default: none. */
  readonly corsOrigins?: readonly string[];
  /** Names of models that `GET /v1/models` lists beside the registered ones, and that every token may use. */
  readonly models?: readonly string[];
  /** Most alternatives that `top_logprobs` and `prompt_logprobs` may ask for; null: no limit. Default 20. */
  readonly maxLogprobs?: number | null;
  /** Largest body of a request. Default 64 MiB. */
  readonly maxBodyBytes?: number;
  /** Most messages of a chat completion request. Default 10,000. */
  readonly maxMessages?: number;
  /** Most trajectories of a training job or a log. Default 10,000. */
  readonly maxTrajectories?: number;
  /** How long a client may take to send a body. Default 30,000. */
  readonly bodyTimeoutMs?: number;
  /** How long a request may take in all, its stream included; null: as long as it needs. Default null. */
  readonly requestTimeoutMs?: number | null;
  /** Is told of failures that are no fault of the client; answers never carry a stack trace. */
  readonly onError?: (error: unknown, requestId: string) => void;
};

/** The same after the check. */
export type HandlerSettings = Required<Omit<HandlerOptions, 'tokens' | 'onError'>> & {
  readonly tokens: readonly Required<Token>[];
  readonly onError: (error: unknown, requestId: string) => void;
};

const DEFAULTS = {
  tokens: [],
  allowAnonymous: false,
  basePath: '',
  corsOrigins: [],
  models: [],
  maxLogprobs: 20,
  maxBodyBytes: 64 * 2 ** 20,
  maxMessages: 10_000,
  maxTrajectories: 10_000,
  bodyTimeoutMs: 30_000,
  requestTimeoutMs: null,
  onError: () => {},
} as const;

const SCOPES: readonly unknown[] = ['complete', 'train', 'read', 'admin'] satisfies Scope[];

/** What was expected of each option, and how to tell. */
const CHECKS: Readonly<Record<keyof HandlerOptions, readonly [string, (value: unknown) => boolean]>> = {
  tokens: [
    'a list of texts of at least one character, or of { token, scopes }',
    (value) => Array.isArray(value) && value.every(isToken),
  ],
  allowAnonymous: ['a boolean', (value) => typeof value === 'boolean'],
  basePath: [
    'a path that begins and does not end with /',
    (value) => typeof value === 'string' && /^$|^\/.*[^/]$/.test(value),
  ],
  corsOrigins: ['a list of texts', isTextList],
  models: ['a list of texts', isTextList],
  maxLogprobs: ['an integer from 0 up, or null', (value) => value === null || isCount(value)],
  maxBodyBytes: ['an integer from 0 up', isCount],
  maxMessages: ['an integer from 0 up', isCount],
  maxTrajectories: ['an integer from 0 up', isCount],
  bodyTimeoutMs: ['an integer from 0 up', isCount],
  requestTimeoutMs: ['an integer from 0 up, or null', (value) => value === null || isCount(value)],
  onError: ['a function', (value) => typeof value === 'function'],
};

/** Names of the options, for those who pass them on. */
export const HANDLER_OPTIONS = Object.keys(CHECKS) as readonly (keyof HandlerOptions)[];

/** Rejects unknown options and wrong values with `INVALID_REQUEST`, naming the option. */
export function checkHandlerOptions(options: HandlerOptions): HandlerSettings {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  for (const [name, value] of given) {
    const check = Object.hasOwn(CHECKS, name) ? CHECKS[name as keyof HandlerOptions] : undefined;
    if (!check) wrongOption(name, `one of ${HANDLER_OPTIONS.join(', ')}`, 'an unknown option');
    const [expected, isRight] = check;
    if (!isRight(value)) wrongOption(name, expected, name === 'tokens' ? 'something else' : String(value));
  }
  const settings: Required<HandlerOptions> = { ...DEFAULTS, ...Object.fromEntries(given) };
  const tokens = settings.tokens.map(
    (entry): Required<Token> =>
      typeof entry === 'string'
        ? { token: entry, scopes: ['admin'] }
        : { token: entry.token, scopes: entry.scopes ?? ['admin'] },
  );
  return { ...settings, tokens };
}

/** Throws the error of a wrong option. */
export function wrongOption(name: string, expected: string, got: string): never {
  throw new OnpolicyError('INVALID_REQUEST', `${name}: expected ${expected}, got ${got}`, { param: name });
}

/** Whether a value is an integer from 0 up. */
export function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isTextList(value: unknown): boolean {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string');
}

function isToken(value: unknown): boolean {
  if (typeof value === 'string') return value !== '';
  if (typeof value !== 'object' || value === null) return false;
  const { token, scopes = [] } = value as { token?: unknown; scopes?: unknown };
  const isKnown = Array.isArray(scopes) && scopes.every((scope) => SCOPES.includes(scope));
  return typeof token === 'string' && token !== '' && isKnown;
}
