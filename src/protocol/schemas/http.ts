/** Options of servers, handlers, clients and pools, and of one call. */

import { PATH } from './model-options.ts';
import * as s from './schema.ts';

/** Longest delay of a timer. */
const LONGEST_MS = 2 ** 31 - 1;

/** Pattern of the id of a request in a header. */
export const TRACE_ID = '^[\\x21-\\x7e]{1,200}$';

const count = (description: string, byDefault: number, more?: s.Schema): s.Schema =>
  s.integer(description, 0, { default: byDefault, ...more });
const countOrNone = (description: string, byDefault: number | null): s.Schema =>
  s.integerOrNull(description, { default: byDefault, keepsNull: true, minimum: 0 });
const texts = (description: string): s.Schema => s.list(description, { type: 'string' }, { default: [] });
const perMinute = (description: string): s.Schema => ({
  description: `${description} Null: any number.`,
  type: ['integer', 'null'],
  default: null,
  minimum: 1,
});

/** Pattern of header text: visible ASCII characters and inner blanks. HTTP strips blanks around a header's value. */
const HEADER_TEXT = '^[\\x21-\\x7e]([\\x20-\\x7e]*[\\x21-\\x7e])?$';
const IN_HEADER = 'a text of visible ASCII characters';
const secret = s.string(
  'The secret that a client sends as `Authorization: Bearer <token>` or `X-Api-Key: <token>`.',
  { pattern: HEADER_TEXT, bounds: 'ASCII, with no blanks around it', expected: IN_HEADER, secret: true },
) satisfies s.Schema;

const handlerProperties: Record<string, s.Schema> = {
  tokens: s.list(
    'Tokens that clients may use. Without any, only clients on this machine are served.',
    {
      ...s.ref('TokenOrText'),
      tsType: 'string | Token',
    },
    { default: [] },
  ),
  allowAnonymous: s.flag(false, 'Without tokens: also serves clients on other machines.'),
  basePath: s.string('Path prefix of all endpoints, for example `/api`.', {
    default: '',
    pattern: '^$|^/.*[^/]$',
    expected: 'a path that begins and does not end with /',
  }),
  page: s.flag(
    false,
    'Serves a chat page to browsers at `/`, under `basePath`: docs/serving.md#the-chat-page.',
  ),
  corsOrigins: texts('Origins whose pages may call from a browser, or `*` for all.'),
  models: texts(
    'Further models that `GET /v1/models` lists and every token may use: paths and `hf:` URIs. Named and registered models of the service are listed anyway.',
  ),
  adapterFolders: texts(
    'Folders whose GGUF LoRA files and PEFT folders requests may name, as a `file` of `adapters` or to load them by a name. Without any, `POST /v1/load_lora_adapter` is off.',
  ),
  maxLogprobs: countOrNone(
    'Most alternatives that `top_logprobs` and `prompt_logprobs` may ask for; null: no limit.',
    20,
  ),
  maxBodyBytes: count("Most bytes of a request's body.", 64 * 2 ** 20),
  maxChoices: count('Most choices that one request may ask for.', 128),
  maxMessages: count(
    'Most messages of a chat completion request, and of a conversation that is trained or logged.',
    10_000,
  ),
  maxInputs: count('Most texts of a request for embeddings, rankings, scores or labels.', 2048),
  maxFileBytes: count('Most bytes of an uploaded file.', 2 ** 30),
  sharePrefixCache: s.flag(
    false,
    'Whether tokens share cached prefixes, which is faster where they send the same prompts. A token then learns from `cached_tokens` and from times how long a prompt of another one begins as its own.',
  ),
  batchFolder: s.string(
    'Where uploaded files and batches are kept, for `POST /v1/files` and `POST /v1/batches`. Default: `batches` in the home folder of a runtime; for other services there are none.',
    { pattern: PATH, expected: 'a path of a folder' },
  ),
  maxTrajectories: count('Most trajectories of a training job or a log.', 10_000),
  bodyTimeoutMs: count('Most milliseconds that a client may take to send a body.', 30_000),
  requestTimeoutMs: countOrNone(
    'Most milliseconds that a request may take, its stream included; null: no limit.',
    null,
  ),
  unknownFields: s.oneOf(
    'Whether fields that the service does not know are ignored, and listed in the header `X-Ignored-Fields`, or refused. A misspelt name of a known field is always refused.',
    ['ignore', 'refuse'],
    { default: 'ignore' },
  ),
  onError: s.callback(
    "Called with failures that are not the client's fault. Responses never contain a stack trace.",
    '((error: unknown, requestId: string) => unknown)',
  ),
  accessLog: s.callback(
    'Called at the end of every request, its stream included.',
    '((entry: AccessEntry) => unknown)',
  ),
};

export const httpDefinitions: s.Definitions = {
  Scope: s.oneOf(
    'What a token allows: completions, training, reading what is stored, or everything (`admin`), deletion included.',
    ['complete', 'train', 'read', 'admin'],
  ),
  Token: s.object(
    'A token and its scopes.',
    ['token'],
    {
      token: secret,
      scopes: s.list('What it allows. `admin` includes all.', s.ref('Scope'), { default: ['admin'] }),
      requestsPerMinute: perMinute('Completions that it may start per minute.'),
      tokensPerMinute: perMinute(
        'Tokens of prompts and answers that it may use per minute; a running answer is not cut off.',
      ),
    },
    { expected: 'a text, or an object with a token' },
  ),
  TokenOrText: {
    description: 'A token, or its text alone.',
    ...s.when({ type: 'string' }, secret, s.ref('Token')),
    tsType: 'string | Token',
  },
  AccessEntry: {
    description: 'A request that was answered.',
    tsType: `{
  /** When it came, in ISO form. */
  readonly time: string;
  readonly method: string;
  /** Without its query, 200 characters at most. */
  readonly path: string;
  /** 499: the client left a stream. */
  readonly status: number;
  /** Milliseconds until its end. */
  readonly ms: number;
  readonly requestId: string;
}`,
  },
  HandlerOptions: s.options('Options of `createHandler`.', [], handlerProperties),
  ServeOptions: s.options('Options of `serve`.', [], {
    ...handlerProperties,
    port: count('Port to listen on. 0: any free one.', 0, { maximum: 65_535 }),
    host: s.string('Host name or address to listen on. Default: this machine only.', {
      default: '127.0.0.1',
      pattern: '^[\\w.:%-]{1,253}$',
      expected: 'a name or an address',
    }),
    graceMs: count('Milliseconds that `close()` lets running requests finish before it ends them.', 10_000, {
      maximum: LONGEST_MS,
    }),
  }),
  ConnectOptions: s.options('Options of `connect`.', ['baseUrl'], {
    baseUrl: s.string("The server's URL, for example `http://127.0.0.1:8080`; it may end in `/v1`.", {
      pattern: '^https?://[^/]',
      expected: 'an http or https URL',
    }),
    apiKey: s.string('Sent as `Authorization: Bearer <apiKey>`.', {
      pattern: '^[\\t\\x20-\\x7e\\x80-\\xff]*$',
      expected: 'a text that a header can hold',
      secret: true,
    }),
    headers: {
      description: 'Further headers of every request.',
      type: 'object',
      additionalProperties: {
        type: 'string',
        pattern: '^[\\t\\x20-\\x7e\\x80-\\xff]*$',
        expected: 'a text that a header can hold',
      },
      default: {},
      tsType: 'Readonly<Record<string, string>>',
    },
    timeoutMs: countOrNone(
      'Most milliseconds until the response is complete; of a stream, until its headers. null: no limit.',
      600_000,
    ),
    maxRetries: count('Most retries of a call that is safe to repeat.', 2),
    pollMs: count('Milliseconds between two polls of a training job.', 500),
    fetch: s.callback("Replaces Node's own client, for example to use a proxy.", 'typeof globalThis.fetch'),
  }),
  PoolOptions: s.options('Options of `createPool`.', [], {
    trainer: count('Index of the member that stores the models and trains.', 0),
    retryMs: count(
      'Milliseconds before a failed member is tried again, doubled with each further failure up to 30 s.',
      250,
    ),
  }),
  CallOptions: s.options('Options of one call.', [], {
    signal: { description: 'Aborts the call; it rejects with code `ABORTED`.', kind: 'AbortSignal' },
    traceId: s.string(
      'Id of a completion whose request has no `request_id`. Unlike that, several running completions may share it.',
      { pattern: TRACE_ID, expected: '1 to 200 visible ASCII characters, which a header can hold' },
    ),
    clientKey: s.string(
      'Which client the call belongs to: stored responses can be read and continued only by the client that created them. Over HTTP it is the token, or without tokens the address.',
      { pattern: '^[^]{1,200}$', expected: '1 to 200 characters' },
    ),
    cacheSalt: s.string(
      'Separates the cached prefixes of this call, as `cache_salt` of a request does and in addition to it. Over HTTP each token has one, unless the server shares them.',
      { pattern: '^[^]{1,200}$', expected: '1 to 200 characters' },
    ),
    background: s.boolean(
      'Whether the request runs in the background: from the next step on it waits while others run. Over HTTP the header `X-Background: true`.',
    ),
    shortenAnswer: s.boolean(
      'Whether a limit of tokens above the room in the context stands for that room, instead of failing with `CONTEXT_OVERFLOW`. It is not sent to servers.',
    ),
  }),
};
