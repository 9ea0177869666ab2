/** What a caller gives to `createHandler` -> checked options with their defaults filled in. */

import type { EngineStats } from '../../engine/index.ts';
import type { AdaptersResource, ResidentModel } from '../../models/index.ts';
import type { ChatCompletionRequest, RenderedPrompt } from '../../protocol/index.ts';
import type { CallOptions, Completions, Service } from '../../service.ts';
import {
  COUNT,
  COUNT_OR_NULL,
  checkOptions,
  FUNCTION,
  type OptionCheck,
  TEXT_LIST,
  wrongOption,
} from '../options.ts';

/** What a token allows: completions, training, reading what is stored, or everything (`admin`), deletion included. */
export type Scope = 'complete' | 'train' | 'read' | 'admin';

/** A token and its scopes. */
export type Token = {
  /** The secret that a client sends as `Authorization: Bearer <token>` or `X-Api-Key: <token>`: ASCII, with no blanks around it. */
  readonly token: string;
  /** Default: all. `admin` stands for all. */
  readonly scopes?: readonly Scope[];
  /** Completions that it may begin in a minute; null, the default: any number. */
  readonly requestsPerMinute?: number | null;
  /** Tokens of prompts and answers that it may use in a minute; an answer under way is not cut. Null, the default: any number. */
  readonly tokensPerMinute?: number | null;
};

/** What a handler can serve: a whole service, or one that only answers completions. Then all else is `UNSUPPORTED`. */
export type Servable = Completions &
  Partial<Service> & {
    /** The HTML page of a model's training run. */
    report?(modelId: string, options?: { readonly compare?: string | null }): Promise<string>;
    /** Names of models that requests can use, the default one first. */
    servedModels?(): readonly string[];
    /** Whether a reference is such a name, a model file that exists, or the URI of one. */
    hasModel?(reference: string): boolean;
    /** The prompt that a request would be answered from. */
    renderPrompt?(request: ChatCompletionRequest, options?: CallOptions): Promise<RenderedPrompt>;
    /** The token ids of a text. */
    tokenize?(
      text: string,
      options?: { model?: string; addSpecialTokens?: boolean; parseSpecial?: boolean },
    ): Promise<readonly number[]>;
    /** The text of token ids. */
    detokenize?(ids: readonly number[], options?: { model?: string }): Promise<string>;
    /** Tokens of prompt and answer together at most, of a model. */
    contextSize?(model?: string | null): Promise<number>;
    /** LoRA adapters that are loaded by a name. */
    readonly adapters?: AdaptersResource;
    /** Models that are in memory, being loaded, or waiting for room. */
    loaded?(): readonly ResidentModel[];
    /** Numbers for `GET /metrics`. */
    stats?(): EngineStats;
  };

/** Options of {@link createHandler}. */
export type HandlerOptions = {
  /** Tokens that clients may use. Default: none, which serves only clients on this machine. */
  readonly tokens?: readonly (string | Token)[];
  /** Without tokens: also serves clients on other machines. Default false. */
  readonly allowAnonymous?: boolean;
  /** Path prefix of all endpoints, for example `/api`. Default: none. */
  readonly basePath?: string;
  /** Origins whose pages may call from a browser, or `*` for all. Default: none. */
  readonly corsOrigins?: readonly string[];
  /**
   * Further models that `GET /v1/models` lists and every token may use: paths and `hf:` URIs. What the service has a name for
   * and the registered models are listed without it.
   */
  readonly models?: readonly string[];
  /**
   * Folders whose GGUF LoRA files and PEFT folders requests may name, as a `file` of `adapters` or to load them by a name. Default:
   * none, which turns `POST /v1/load_lora_adapter` off.
   */
  readonly adapterFolders?: readonly string[];
  /** Most alternatives that `top_logprobs` and `prompt_logprobs` may ask for; null: no limit. Default 20. */
  readonly maxLogprobs?: number | null;
  /** Most bytes of a request's body. Default 64 MiB. */
  readonly maxBodyBytes?: number;
  /** Most choices that one request may ask for. Default 128. */
  readonly maxChoices?: number;
  /** Most messages of a chat completion request. Default 10,000. */
  readonly maxMessages?: number;
  /** Most texts of a request for embeddings. Default 2,048. */
  readonly maxInputs?: number;
  /** Most trajectories of a training job or a log. Default 10,000. */
  readonly maxTrajectories?: number;
  /** Most milliseconds that a client may take to send a body. Default 30,000. */
  readonly bodyTimeoutMs?: number;
  /** Most milliseconds that a request may take, its stream included; null: no limit. Default null. */
  readonly requestTimeoutMs?: number | null;
  /**
   * Whether fields that the service does not know are ignored, and listed in the header `X-Ignored-Fields`, or refused. Default
   * `ignore`. A misspelt name of a known field is always refused.
   */
  readonly unknownFields?: 'ignore' | 'refuse';
  /** Called with failures that are not the client's fault. Responses never contain a stack trace. */
  readonly onError?: (error: unknown, requestId: string) => void;
  /** Called at the end of every request, its stream included. */
  readonly accessLog?: (entry: AccessEntry) => void;
};

/** A request that was answered. */
export type AccessEntry = {
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
};

/** The same after the check. */
export type HandlerSettings = Required<Omit<HandlerOptions, 'tokens'>> & {
  readonly tokens: readonly Required<Token>[];
};

const DEFAULTS = {
  tokens: [],
  allowAnonymous: false,
  basePath: '',
  corsOrigins: [],
  models: [],
  adapterFolders: [],
  maxLogprobs: 20,
  maxBodyBytes: 64 * 2 ** 20,
  maxChoices: 128,
  maxMessages: 10_000,
  maxInputs: 2048,
  maxTrajectories: 10_000,
  bodyTimeoutMs: 30_000,
  requestTimeoutMs: null,
  unknownFields: 'ignore',
  onError: () => {},
  accessLog: () => {},
} as const;

const SCOPES: readonly unknown[] = ['complete', 'train', 'read', 'admin'] satisfies Scope[];

const CHECKS: Readonly<Record<keyof HandlerOptions, OptionCheck>> = {
  tokens: ['a list', Array.isArray],
  allowAnonymous: ['a boolean', (value) => typeof value === 'boolean'],
  basePath: [
    'a path that begins and does not end with /',
    (value) => typeof value === 'string' && /^$|^\/.*[^/]$/.test(value),
  ],
  corsOrigins: TEXT_LIST,
  models: TEXT_LIST,
  adapterFolders: TEXT_LIST,
  maxLogprobs: COUNT_OR_NULL,
  maxBodyBytes: COUNT,
  maxChoices: COUNT,
  maxMessages: COUNT,
  maxInputs: COUNT,
  maxTrajectories: COUNT,
  bodyTimeoutMs: COUNT,
  requestTimeoutMs: COUNT_OR_NULL,
  unknownFields: ['ignore or refuse', (value) => value === 'ignore' || value === 'refuse'],
  onError: FUNCTION,
  accessLog: FUNCTION,
};

/** Fills defaults in. Throws `INVALID_REQUEST` for an unknown option or a wrong value. */
export function checkHandlerOptions(options: HandlerOptions): HandlerSettings {
  const settings: Required<HandlerOptions> = { ...DEFAULTS, ...checkOptions(options, CHECKS, 'tokens') };
  const tokens = settings.tokens.map((entry, i): Required<Token> => {
    checkToken(entry, `tokens[${i}]`);
    const given = typeof entry === 'string' ? { token: entry } : entry;
    return { scopes: ['admin'], requestsPerMinute: null, tokensPerMinute: null, ...given };
  });
  return { ...settings, tokens };
}

/** Visible ASCII characters, with blanks between them at most: a header arrives without those around it. */
const HEADER_TEXT = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/;

const IN_HEADER = 'a text of visible ASCII characters';
const PER_MINUTE: OptionCheck = [
  'an integer from 1 up, or null',
  (value) => value === null || (Number.isInteger(value) && (value as number) > 0),
];
const TOKEN_CHECKS: Readonly<Record<keyof Token, OptionCheck>> = {
  token: [IN_HEADER, (value) => typeof value === 'string' && HEADER_TEXT.test(value)],
  scopes: [
    `a list of ${SCOPES.join(', ')}`,
    (value) => Array.isArray(value) && value.every((scope) => SCOPES.includes(scope)),
  ],
  requestsPerMinute: PER_MINUTE,
  tokensPerMinute: PER_MINUTE,
};

/** An entry of `tokens`: its text is in no error. */
function checkToken(entry: unknown, at: string): void {
  if (typeof entry === 'string') {
    if (!HEADER_TEXT.test(entry)) wrongOption(at, IN_HEADER, 'a text with others');
    return;
  }
  if (typeof entry !== 'object' || entry === null || !('token' in entry))
    wrongOption(
      at,
      `a text, or an object of ${Object.keys(TOKEN_CHECKS).join(', ')}`,
      entry === null ? 'null' : typeof entry,
    );
  checkOptions(entry as Token, TOKEN_CHECKS, 'token', `${at}.`);
}
