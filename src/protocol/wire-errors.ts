/** An error <-> its status and body on the wire. Endpoints of completions and preview endpoints have different forms. */
import { isObject } from '../common/index.ts';
import { contextUse, type ErrorCode, type ErrorDetail, errorCodes, OnpolicyError } from '../errors.ts';

/**
 * `completion`: `{ error: { message, type, param, code } }`. `messages`: the same with `type: 'error'` and the types of Anthropic's API.
 * `ollama`: `{ error }`, a text. `preview`: `{ detail }`.
 */
export type ErrorForm = 'completion' | 'messages' | 'ollama' | 'preview';

/** Header with the error's code, in every form. */
export const CODE_HEADER = 'x-error-code';

/** Data of the last event in a stream. */
export const STREAM_END = '[DONE]';

/** Returns a server-sent event without a name. */
export function eventOf(data: string): string {
  return `data: ${data}\n\n`;
}

/** A comment in a stream of events, which readers skip. It is sent during silence, so that nobody takes the connection for dead. */
export const IDLE_EVENT = ': still here\n\n';
/** Milliseconds of silence after which it is sent. */
export const SILENCE_MS = 10_000;

/** Headers of a stream of events. */
export const EVENT_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no',
} as const;

/** Returns the last events of a stream that fails. */
export function failureEvents(error: OnpolicyError): string {
  return eventOf(JSON.stringify({ error: toWireError(error) })) + eventOf(STREAM_END);
}

/** Code of `CONTEXT_OVERFLOW` in completion APIs. */
const OVERFLOW = 'context_length_exceeded';

/** Limits of the value that an error detail sends back. */
const MAX_INPUT_CHARACTERS = 1000;
const MAX_INPUT_VALUES = 100;

/** The error object of the `completion` form and of events in a stream. */
export type WireError = {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: ErrorCode | typeof OVERFLOW;
  readonly detail?: readonly ErrorDetail[];
  /** The text of an answer that could not be read. */
  readonly text?: string;
};

export function toWireError(error: OnpolicyError): WireError {
  const { param, code, status, detail, text } = error;
  const isOverflow = code === 'CONTEXT_OVERFLOW';
  return {
    message: isOverflow ? overflowMessage(error) : error.message,
    type: errorType(status),
    param: param ?? null,
    code: isOverflow ? OVERFLOW : code,
    ...(detail ? { detail: detail.map(shownDetail) } : {}),
    ...(text === undefined ? {} : { text }),
  };
}

/** Returns the status and body of an error. */
export function toErrorBody(error: OnpolicyError, form: ErrorForm): { status: number; body: object } {
  if (form === 'completion') return { status: error.status, body: { error: toWireError(error) } };
  if (form === 'ollama') return { status: error.status, body: { error: error.message } };
  if (form === 'messages') {
    const type = messagesErrorType(error.status);
    const own = error.code === 'CONTEXT_OVERFLOW' ? { message: longPromptMessage(error) } : {};
    return { status: error.status, body: { type: 'error', error: { ...toWireError(error), type, ...own } } };
  }
  if (error.code !== 'INVALID_REQUEST') return { status: error.status, body: { detail: error.message } };
  const loc = error.param === undefined ? [] : error.param.split('.');
  const detail = error.detail ?? [{ loc, msg: error.message, type: 'value' }];
  return { status: 422, body: { detail: detail.map(shownDetail) } };
}

/** Returns the message by which clients of OpenAI's APIs detect that they must shorten the conversation. */
function overflowMessage(error: OnpolicyError): string {
  const use = contextUse(error);
  if (!use) return `The input exceeds the context window of this model. ${error.message}`;
  const { prompt_tokens, max_model_len, max_completion_tokens: wanted } = use;
  const most = `This model's maximum context length is ${max_model_len} tokens. However, `;
  return wanted === undefined
    ? `${most}your messages resulted in ${prompt_tokens} tokens. Please reduce the length of the messages.`
    : `${most}you requested ${prompt_tokens + wanted} tokens (${prompt_tokens} in the messages, ${wanted} in the completion). ` +
        'Please reduce the length of the messages or completion.';
}

/** Returns the same kind of message for clients of Anthropic's API. */
function longPromptMessage(error: OnpolicyError): string {
  const use = contextUse(error);
  return use
    ? `prompt is too long: ${use.prompt_tokens} tokens > ${use.max_model_len} maximum`
    : `prompt is too long: ${error.message}`;
}

/** Returns the error of a server's response. `code`: its header {@link CODE_HEADER}, null if missing. */
export function fromErrorBody(
  status: number,
  code: string | null,
  body: unknown,
  form: ErrorForm,
): OnpolicyError {
  const { error, detail } = isObject(body) ? body : { error: undefined, detail: undefined };
  if (isObject(error)) return fromWireError(error, status, code, form);
  const known = knownCode(code) ?? codeOfStatus(status, form);
  if (Array.isArray(detail) && detail.length > 0 && detail.every(isDetail)) {
    const more = detail.length === 1 ? '' : ` (and ${detail.length - 1} more)`;
    return new OnpolicyError(known, `${detail[0]!.msg}${more}`, { detail });
  }
  const text = [detail, error, isObject(body) ? body['message'] : body].find(
    (value): value is string => typeof value === 'string' && value !== '',
  );
  return new OnpolicyError(known, text?.slice(0, MAX_INPUT_CHARACTERS) ?? `the server answered ${status}`);
}

/** Returns the error in a body or in an event of a stream. */
export function fromWireError(
  error: Readonly<Record<string, unknown>>,
  status = 500,
  code: string | null = null,
  form: ErrorForm = 'completion',
): OnpolicyError {
  const { message, param, detail } = error;
  const stated = typeof error['code'] === 'number' ? error['code'] : status; // vLLM and llama.cpp send the status as code
  const known = knownCode(error['code']) ?? knownCode(code) ?? codeOfStatus(stated, form);
  return new OnpolicyError(known, typeof message === 'string' ? message : `the server answered ${status}`, {
    ...(typeof param === 'string' ? { param } : {}),
    ...(Array.isArray(detail) && detail.every(isDetail) ? { detail } : {}),
  });
}

function knownCode(code: unknown): ErrorCode | null {
  if (code === OVERFLOW) return 'CONTEXT_OVERFLOW';
  return errorCodes.find((known) => known === code) ?? null;
}

const CODES: Readonly<Record<number, ErrorCode>> = {
  401: 'UNAUTHORIZED',
  403: 'FORBIDDEN',
  405: 'UNSUPPORTED',
  408: 'TIMEOUT',
  409: 'CONFLICT',
  413: 'TOO_LARGE',
  429: 'OVERLOADED',
  501: 'UNSUPPORTED',
  502: 'NETWORK_FAILED',
  503: 'NETWORK_FAILED',
  504: 'NETWORK_FAILED',
};

function codeOfStatus(status: number, form: ErrorForm): ErrorCode {
  if (status === 404) return form === 'completion' ? 'MODEL_NOT_FOUND' : 'NOT_FOUND';
  return CODES[status] ?? (status < 500 ? 'INVALID_REQUEST' : 'BACKEND_FAILED');
}

const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
};
/** Further types that only the messages API has. */
const MESSAGES_TYPES: Readonly<Record<number, string>> = {
  408: 'timeout_error',
  413: 'request_too_large',
  503: 'overloaded_error',
};

function errorType(status: number): string {
  return TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'server_error');
}

function messagesErrorType(status: number): string {
  return MESSAGES_TYPES[status] ?? (status < 500 ? errorType(status) : 'api_error');
}

/** Returns an error detail, without its value if that is large or deep: serializing it could take long or overflow the stack. */
function shownDetail({ input, ...detail }: ErrorDetail): ErrorDetail {
  const budget = { values: MAX_INPUT_VALUES, characters: MAX_INPUT_CHARACTERS };
  return input === undefined || !isSmall(input, budget) ? detail : { ...detail, input };
}

function isSmall(value: unknown, budget: { values: number; characters: number }): boolean {
  budget.values -= 1;
  if (typeof value === 'string') budget.characters -= value.length;
  if (budget.values < 0 || budget.characters < 0) return false;
  if (typeof value === 'bigint' || typeof value === 'function' || typeof value === 'symbol') return false;
  if (typeof value !== 'object' || value === null) return true;
  for (const key in value) {
    budget.characters -= key.length;
    if (!isSmall((value as Record<string, unknown>)[key], budget)) return false;
  }
  return true;
}

function isDetail(value: unknown): value is ErrorDetail {
  return isObject(value) && Array.isArray(value['loc']) && typeof value['msg'] === 'string';
}
