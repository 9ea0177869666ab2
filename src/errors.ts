/** A code and a message -> the library's error class, with the HTTP status of the code. */

/** All error codes, each with its HTTP status. A new code is a minor release, a renamed one a major release. */
const STATUS = {
  INVALID_REQUEST: 400, // a field of a request or option is wrong; `detail` lists every fault
  UNSUPPORTED: 400, // a legal request that this model, engine or version cannot serve
  MODEL_NOT_FOUND: 404, // no such model, file or download
  NOT_FOUND: 404, // no such checkpoint, training job or endpoint
  CONFLICT: 409, // the object already exists or is in use
  STORE_FAILED: 500, // the home folder, or another file, cannot be read or written: damaged, full, not permitted, or locked
  UNAUTHORIZED: 401, // no token, or an unknown one
  FORBIDDEN: 403, // the token does not allow this
  TOO_LARGE: 413, // the request exceeds a limit of the server
  OVERLOADED: 429, // the queue is full, or a token has used up its quota; `retryAfterMs` says when to try again
  TIMEOUT: 408, // a time limit was exceeded
  MODEL_INVALID: 400, // the file exists but is damaged, truncated, or of an unknown architecture
  TEMPLATE_FAILED: 400, // the chat template raised an error or ran over its budget
  CONTEXT_OVERFLOW: 400, // prompt and requested output do not fit into the context
  OUT_OF_MEMORY: 503, // the model, its context or a buffer does not fit into memory
  ANSWER_INVALID: 422, // an answer with a format of `schema` was cut, or its schema refuses it; `text` has it
  NO_ALLOWED_TOKEN: 400, // masks left no token to sample
  TRAINING_DIVERGED: 422, // a training job's numbers stopped being finite; its checkpoint was not published
  ABORTED: 499, // the caller's AbortSignal fired
  CLOSED: 503, // used after `close()`
  NETWORK_FAILED: 502, // a download or remote call failed
  NATIVE_UNAVAILABLE: 500, // the addon or the engine's libraries are missing or of another version
  BACKEND_FAILED: 500, // the engine failed, not the caller's fault
} as const;

/** Code of an error. */
export type ErrorCode = keyof typeof STATUS;

/** All codes. */
export const errorCodes = Object.keys(STATUS) as readonly ErrorCode[];

/** One fault of an input, in the form of validation errors over HTTP. */
export type ErrorDetail = {
  /** Path of the invalid value, for example `['messages', '0', 'role']`. */
  readonly loc: readonly string[];
  /** The expected and the actual value, in words. */
  readonly msg: string;
  /** Kind of the fault, for example `missing`, `type`, `range`, `unknown_field`. */
  readonly type: string;
  /** The value found. */
  readonly input?: unknown;
  /** More details, for example the bounds. */
  readonly ctx?: Readonly<Record<string, unknown>>;
};

/** Options of {@link OnpolicyError}. */
export type OnpolicyErrorOptions = {
  readonly cause?: unknown;
  readonly param?: string;
  readonly detail?: readonly ErrorDetail[];
  readonly retryAfterMs?: number;
  readonly text?: string;
};

/** Class of all errors that public functions throw or reject with. Branch on `code`; messages may change in any release. */
export class OnpolicyError extends Error {
  override readonly name = 'OnpolicyError';
  /** Code of the error. */
  readonly code: ErrorCode;
  /** The HTTP status of `code`. */
  readonly status: number;
  /** Path of the invalid request field, the first one if there are several; absent if no field is at fault. */
  readonly param?: string;
  /** Every fault of an invalid input. */
  readonly detail?: readonly ErrorDetail[];
  /** When to try again, if known. */
  readonly retryAfterMs?: number;
  /** The text of an answer that could not be read. */
  readonly text?: string;

  /**
   * Creates an error, for code that replaces the library, for example in tests.
   * @param options.param defaults to the path of the first entry of `detail`
   */
  constructor(code: ErrorCode, message: string, options: OnpolicyErrorOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
    this.code = code;
    this.status = STATUS[code];
    const param = options.param ?? options.detail?.[0]?.loc.join('.');
    if (param) this.param = param;
    if (options.detail) this.detail = options.detail;
    if (options.retryAfterMs !== undefined) this.retryAfterMs = options.retryAfterMs;
    if (options.text !== undefined) this.text = options.text;
  }
}

/** Returns an error about a field. Its message begins with the field's path. */
export function errorAt(param: string, code: ErrorCode, reason: string, cause?: unknown): OnpolicyError {
  return new OnpolicyError(code, `${param}: ${reason}`, {
    param,
    ...(cause === undefined ? {} : { cause }),
  });
}

/** Returns the error of work whose signal has fired. If a time limit fired it, returns the error of the limit. */
export function abortedBy(signal: AbortSignal | null | undefined, what = 'the request'): OnpolicyError {
  const cause: unknown = signal?.reason;
  if (cause instanceof OnpolicyError && cause.code === 'TIMEOUT') return cause;
  return new OnpolicyError('ABORTED', `${what} was aborted`, { cause });
}

/** Throws the error of the signal if it has fired. */
export function failIfAborted(signal: AbortSignal | null | undefined, what?: string): void {
  if (signal?.aborted) throw abortedBy(signal, what);
}

/**
 * Token counts of a request that does not fit into a context: of its prompt, of the context, and of the answer if the request states it.
 */
export type ContextUse = {
  readonly prompt_tokens: number;
  readonly max_model_len: number;
  readonly max_completion_tokens?: number;
};

/** Returns the error of a request at `param` that does not fit into the context. */
export function contextOverflow(param: string, message: string, use: ContextUse): OnpolicyError {
  const msg = `${param}: ${message}`;
  const detail = [{ loc: param.split('.'), msg, type: 'context', ctx: use }];
  return new OnpolicyError('CONTEXT_OVERFLOW', msg, { detail });
}

/** Returns the token counts of such an error, which may come from another process. Returns null for other errors. */
export function contextUse({ detail }: OnpolicyError): ContextUse | null {
  const { prompt_tokens, max_model_len } = (detail?.[0]?.ctx ?? {}) as Partial<ContextUse>;
  const isKnown = typeof prompt_tokens === 'number' && typeof max_model_len === 'number';
  return isKnown ? (detail![0]!.ctx as ContextUse) : null;
}

/** Codes that only the file system reports, even if the error names no file. */
const FILE_CODES = ['ENOSPC', 'EDQUOT', 'EFBIG', 'EIO', 'EROFS', 'EISDIR'];

/** Converts any error to an {@link OnpolicyError}: a native one by its code, one of the file system to `STORE_FAILED`. */
export function fromNative(error: unknown): OnpolicyError {
  if (error instanceof OnpolicyError) return error;
  const { code = '', message, syscall, path } = error as Partial<NodeJS.ErrnoException>;
  const isOfFiles = syscall !== undefined && (path !== undefined || FILE_CODES.includes(code));
  const other = isOfFiles ? 'STORE_FAILED' : 'BACKEND_FAILED';
  const known = Object.hasOwn(STATUS, code) ? (code as ErrorCode) : other;
  return new OnpolicyError(known, message ?? String(error), { cause: error });
}

/** Returns the message of a thrown value of any type. */
export function messageOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? String(thrown.message) : String(thrown);
  } catch {
    return 'a value that cannot be shown';
  }
}
