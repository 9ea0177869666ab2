/** A service -> a function from `Request` to `Response`, for any server. */
import { randomUUID } from 'node:crypto';
import { OnpolicyError } from '../../../errors.ts';
import {
  type AccessEntry,
  fault,
  type HandlerOptions,
  isTraceId,
  throwFaults,
} from '../../../protocol/index.ts';
import { BACKGROUND_HEADER } from '../headers.ts';
import { limitTime } from '../time-limits.ts';
import { type Authorizer, allows, type Client, callerOf, createAuthorizer } from './auth.ts';
import { Bodies } from './body.ts';
import type { RequestContext } from './context.ts';
import { corsHeaders, preflight } from './cors.ts';
import type { Endpoint } from './endpoint.ts';
import type { EventStream } from './event-stream.ts';
import { HandlerBatches } from './handler-batches.ts';
import { checkHandlerOptions, type HandlerSettings, type Servable, validationOf } from './handler-options.ts';
import { RequestMetrics } from './metrics.ts';
import { findEndpoints, formOf } from './routes.ts';
import { RunningStreams } from './running-streams.ts';
import { UNLIMITED } from './token-limits.ts';
import { needOf } from './token-need.ts';
import { errorResponse, type ServedRequest, type ServedResponse } from './wire.ts';

/** Answers a request; never rejects. */
export type Handler = (request: Request) => Promise<Response>;

/**
 * Serves a service through standard requests and responses, without its own server.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options
 */
export function createHandler(service: Servable, options: HandlerOptions = {}): Handler {
  const handler = new RequestHandler(service, checkHandlerOptions(options));
  return async (request) => toResponse(await handler.handle(request), request.method);
}

/** Answers requests. Can wait for the running ones, or end them. */
export class RequestHandler {
  readonly #service: Servable;
  readonly #settings: HandlerSettings;
  readonly #authorizer: Authorizer;
  readonly #metrics = new RequestMetrics();
  readonly #streams = new RunningStreams();
  readonly #running = new Set<AbortController>();
  readonly #batches: HandlerBatches;
  readonly #bodies: Bodies;
  #onIdle: (() => void) | null = null; // set while draining

  constructor(service: Servable, settings: HandlerSettings) {
    this.#service = service;
    this.#settings = settings;
    this.#settings.models.forEach((name, i) => {
      if (service.hasModel?.(name) === false)
        throwFaults([fault(['models', String(i)], 'value', 'a model that the service has', name)]);
    });
    this.#authorizer = createAuthorizer(this.#settings);
    this.#bodies = new Bodies(this.#settings);
    this.#batches = new HandlerBatches(
      this.#service,
      this.#settings,
      this.#metrics,
      this.#authorizer.limitsOf,
    );
  }

  /** Answers a request; never rejects. */
  async handle(request: ServedRequest): Promise<ServedResponse> {
    const url = toUrl(request.url);
    if (!url) {
      const error = new OnpolicyError('INVALID_REQUEST', 'the request cannot be read');
      return errorResponse(error, 'completion');
    }
    const startedMs = performance.now();
    const time = new Date().toISOString();
    const traceId = traceIdOf(request);
    let requestId = traceId;
    const { signal, close } = this.#open(request);
    const path = withoutBase(withOneSlash(url.pathname), this.#settings.basePath);
    const { endpoints, id } = findEndpoints(path);
    this.#metrics.begin();
    let onEnd = (): void => {};
    const end = (status: number): void => {
      close();
      onEnd();
      const isKnown = endpoints.some(({ method }) => method === methodOf(request));
      const method = isKnown ? request.method : 'other';
      const ms = performance.now() - startedMs;
      this.#metrics.end(method, endpoints[0]?.path ?? 'none', status, ms / 1000);
      const shown = url.pathname.slice(0, MOST_PATH);
      this.#log({ time, method: request.method, path: shown, status, ms, requestId });
    };
    const toError = (error: unknown): OnpolicyError => this.#toError(error, signal, requestId);
    const ignored: string[] = [];
    const validation = validationOf(this.#settings, (path) => ignored.push(path));
    let isStream = false;
    const beginStream: RequestContext['beginStream'] = () => {
      isStream = true;
      return (outcome) => end(OUTCOME_STATUS[outcome]);
    };
    const response = await this.#answer(endpoints, {
      request,
      url,
      body: () => this.#bodies.readJson(request, signal),
      bytes: () => this.#bodies.readBytes(request),
      validation,
      id,
      setRequestId: (id) => {
        requestId = id;
      },
      call: { signal, traceId, clientKey: '', background: request.headers.get(BACKGROUND_HEADER) === 'true' },
      isLimited: false,
      charge: () => {},
      reserve: async () => {},
      onEnd: (act) => {
        onEnd = act;
      },
      service: this.#service,
      settings: this.#settings,
      metrics: this.#metrics,
      streams: this.#streams,
      openBatches: () => this.#batches.open(),
      rowsFor: this.#batches.rowsFor,
      toError,
      beginStream,
    }).catch((error: unknown) => errorResponse(toError(error), formOf(path)));
    if (!isStream) end(response.status);
    const { headers } = response;
    Object.assign(headers, corsHeaders(request, this.#settings.corsOrigins, headers['vary']), {
      'x-request-id': requestId,
      ...(formOf(path) === 'messages' ? { 'request-id': requestId } : {}),
      ...(ignored.length > 0 ? { [IGNORED_HEADER]: inHeader(ignored) } : {}),
    });
    if (this.#onIdle) headers['connection'] = 'close';
    return response;
  }

  /** Continues batches of an earlier server. */
  async resumeBatches(): Promise<void> {
    await this.#batches.resume().catch((error: unknown) => this.#settings.onError?.(error, 'batches'));
  }

  /** Stops batches. The next server continues them. */
  async closeBatches(): Promise<void> {
    await this.#batches.close();
  }

  /** Refuses further requests. Resolves when the running ones are answered. */
  drain(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle = resolve;
      if (this.#running.size === 0) resolve();
    });
  }

  /** Ends the running requests with `CLOSED`. */
  abort(): void {
    for (const controller of this.#running) controller.abort(closingError());
  }

  /** Returns the response of the endpoint for the request's method. Throws if the token does not allow it. */
  async #answer(
    endpoints: readonly Endpoint[],
    context: Omit<RequestContext, 'scopes'> & { readonly onEnd: (act: () => void) => void },
  ): Promise<ServedResponse> {
    const { request, url, settings } = context;
    if (endpoints.length === 0) throw new OnpolicyError('NOT_FOUND', 'there is no such endpoint');
    const methods = endpoints.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : method));
    if (request.method === 'OPTIONS') return preflight(request, methods, settings.corsOrigins);
    const endpoint = endpoints.find(({ method }) => method === methodOf(request));
    if (!endpoint) return notAllowed(methods, endpoints[0]!.form);
    if (this.#onIdle) throw closingError();
    const client = endpoint.scopes === null ? NOBODY : this.#authorizer.clientOf(request, url);
    const { scopes, limits } = client;
    if (endpoint.scopes !== null && !allows(scopes, endpoint.scopes))
      throw new OnpolicyError('FORBIDDEN', `the token needs the scope ${endpoint.scopes.join(' or ')}`);
    let reserved = UNLIMITED;
    const reserve = async (body: unknown): Promise<void> => {
      if (!limits?.hasTokens) return;
      const need = await needOf(endpoint, body, context);
      reserved = limits.reserve(need, performance.now());
      context.onEnd(reserved.end);
    };
    const isCounted = endpoint.method === 'POST' && endpoint.scopes?.includes('complete');
    if (isCounted) limits?.begin(performance.now());
    return await endpoint.handle({
      ...context,
      scopes,
      body: async () => {
        const body = await context.body();
        if (isCounted) await reserve(body);
        return body;
      },
      call: { ...context.call, ...callerOf(client.key, settings) },
      isLimited: limits?.hasTokens ?? false,
      charge: (tokens) => reserved.charge(tokens),
      reserve,
    });
  }

  /** Registers a running request until `close` is called. The signal fires when the client leaves, time is up or the server stops. */
  #open({ signal: left }: ServedRequest): { signal: AbortSignal; close: () => void } {
    const controller = new AbortController();
    const onLeave = (): void => controller.abort(new OnpolicyError('ABORTED', 'the client went away'));
    left.addEventListener('abort', onLeave);
    if (left.aborted) onLeave();
    const ms = this.#settings.requestTimeoutMs;
    const onLate = (): void => controller.abort(new OnpolicyError('TIMEOUT', `it took longer than ${ms} ms`));
    const stopClock = limitTime(ms, onLate);
    this.#running.add(controller);
    const close = (): void => {
      stopClock();
      left.removeEventListener('abort', onLeave);
      this.#running.delete(controller);
      if (this.#running.size === 0) this.#onIdle?.();
    };
    return { signal: controller.signal, close };
  }

  /** Calls the access log. An error that it throws does not fail the request. */
  #log(entry: AccessEntry): void {
    try {
      this.#settings.accessLog?.(entry);
    } catch (error) {
      this.#settings.onError?.(error, entry.requestId);
    }
  }

  /** Returns the error to answer with: the reason of the abort if the request was aborted. */
  #toError(error: unknown, signal: AbortSignal, requestId: string): OnpolicyError {
    if (signal.aborted && signal.reason instanceof OnpolicyError) return signal.reason;
    const isKnown = error instanceof OnpolicyError;
    if (!isKnown || error.status >= 500) this.#settings.onError?.(error, requestId);
    return isKnown ? error : new OnpolicyError('BACKEND_FAILED', 'the server failed');
  }
}

/** Client of endpoints that require no token. */
const NOBODY: Client = { scopes: [], key: '', limits: null };

/** Header with the paths of the fields that had no effect, and the most paths in it. */
const IGNORED_HEADER = 'x-ignored-fields';
const MOST_IGNORED = 20;

function inHeader(paths: readonly string[]): string {
  const shown = paths
    .slice(0, MOST_IGNORED)
    .map((path) => encodeURIComponent(Buffer.from(path.slice(0, 100)).toString()));
  return [...shown, ...(paths.length > MOST_IGNORED ? ['...'] : [])].join(', ');
}

/** Most characters of a path in the access log. */
const MOST_PATH = 200;

/** Status of a stream in metrics and access log, by its outcome. */
const OUTCOME_STATUS = { complete: 200, failed: 500, left: 499 } as const;

/** Returns the method that selects the endpoint. `HEAD` uses that of `GET`. */
function methodOf({ method }: ServedRequest): string {
  return method === 'HEAD' ? 'GET' : method;
}

/** Returns the client's own id of the request, or a new one. */
function traceIdOf(request: ServedRequest): string {
  const given = request.headers.get('x-request-id');
  return isTraceId(given) ? given : randomUUID();
}

/** Returns null for an invalid URL, and for one with a user name that hides the host. */
function toUrl(text: string): URL | null {
  try {
    const url = new URL(text);
    return url.username === '' && url.password === '' ? url : null;
  } catch {
    return null;
  }
}

/** Returns a path with one leading slash. Clients whose base URL ends with a slash send two. */
function withOneSlash(path: string): string {
  return path.startsWith('//') ? path.replace(/^\/+/, '/') : path;
}

function withoutBase(path: string, base: string): string {
  if (base === '') return path;
  return path.startsWith(`${base}/`) ? path.slice(base.length) : '';
}

function notAllowed(methods: readonly string[], form: Endpoint['form']): ServedResponse {
  const error = new OnpolicyError('UNSUPPORTED', `expected the method ${methods.join(' or ')}`);
  const { headers, body } = errorResponse(error, form);
  return { status: 405, headers: { ...headers, allow: methods.join(', ') }, body };
}

function closingError(): OnpolicyError {
  return new OnpolicyError('CLOSED', 'the server is closing');
}

/** Returns an answer as a standard response, without its body for `HEAD`. */
function toResponse({ status, headers, body }: ServedResponse, method: string): Response {
  if (method === 'HEAD') return new Response(null, { status, headers });
  if (body instanceof Uint8Array) return new Response(body, { status, headers });
  const content = typeof body === 'string' ? body || null : toStream(body);
  return new Response(content, { status, headers });
}

/** Returns a stream that reads an event only when its reader asks for it. */
function toStream(events: EventStream): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream(
    {
      start: (controller) => events.onCut((reason) => controller.error(reason)),
      pull: async (controller) => {
        const { done, value } = await events.next();
        if (done) controller.close();
        else controller.enqueue(typeof value === 'string' ? encoder.encode(value) : value);
      },
      cancel: async () => void (await events.return()),
    },
    { highWaterMark: 0 },
  );
}
