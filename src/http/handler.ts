/** A service -> a function from `Request` to `Response`, for any server. READ FIRST of this folder. */
import { randomUUID } from 'node:crypto';
import { OnpolicyError } from '../errors.ts';
import { allows, createAuthorizer } from './auth.ts';
import { corsHeaders, preflight } from './cors.ts';
import { type Exchange, work } from './endpoints.ts';
import { json, type WireRequest, type WireResponse } from './exchange.ts';
import { RequestMetrics } from './metrics.ts';
import { checkHandlerOptions, type HandlerOptions, type Servable } from './options.ts';
import { findEndpoints, formOf } from './routes.ts';
import { limitTime } from './time-limits.ts';
import { fromRequest, toResponse } from './web.ts';
import { CODE_HEADER, type ErrorForm, toErrorBody } from './wire-errors.ts';

/** Answers a request; never rejects. */
export type Handler = (request: Request) => Promise<Response>;

/** A handler whose requests can be waited for and ended. */
export type Wire = {
  /** Answers a request; never rejects. */
  readonly handle: (request: WireRequest) => Promise<WireResponse>;
  /** Takes no further requests; resolves when the running ones are answered. */
  readonly drain: () => Promise<void>;
  /** Ends what still runs with `CLOSED`. */
  readonly abort: () => void;
};

/**
 * Serves a service by standard requests and responses, with no server of its own.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options
 */
export function createHandler(service: Servable, options: HandlerOptions = {}): Handler {
  const { handle } = createWire(service, options);
  return async (request) => toResponse(await handle(fromRequest(request)));
}

/** The same with control over what runs. */
export function createWire(service: Servable, options: HandlerOptions): Wire {
  const settings = checkHandlerOptions(options);
  const authorize = createAuthorizer(settings);
  const metrics = new RequestMetrics();
  const running = new Set<AbortController>();
  let onIdle: (() => void) | null = null; // set while draining

  /** Notes a request until it is answered. */
  const open = (request: WireRequest): { signal: AbortSignal; close: () => void } => {
    const controller = new AbortController();
    const onAbort = (): void => controller.abort(new OnpolicyError('ABORTED', 'the client went away'));
    const stay = request.onLeave(onAbort);
    const ms = settings.requestTimeoutMs;
    const late = (): void => controller.abort(new OnpolicyError('TIMEOUT', `it took longer than ${ms} ms`));
    const stopClock = ms === null ? () => {} : limitTime(ms, late);
    running.add(controller);
    const close = (): void => {
      stopClock();
      stay();
      running.delete(controller);
      if (running.size === 0) onIdle?.();
    };
    return { signal: controller.signal, close };
  };

  /** The error to answer with: why the request was ended, where that is what happened. */
  const toError = (error: unknown, signal: AbortSignal, requestId: string): OnpolicyError => {
    if (signal.aborted && signal.reason instanceof OnpolicyError) return signal.reason;
    const isOurs = error instanceof OnpolicyError;
    if (!isOurs || error.status >= 500) settings.onError(error, requestId);
    return isOurs ? error : new OnpolicyError('BACKEND_FAILED', 'the server failed');
  };

  const handle = async (request: WireRequest): Promise<WireResponse> => {
    const startedMs = performance.now();
    const given = request.header('x-request-id');
    const isIdGiven = given !== null && /^[\x21-\x7e]{1,200}$/.test(given);
    const requestId = isIdGiven ? given : randomUUID();
    const { signal, close } = open(request);
    const path = withoutBase(request.url.pathname, settings.basePath);
    const { endpoints, id } = findEndpoints(path);
    metrics.begin();
    const end = (status: number): void => {
      close();
      const method = endpoints.some((endpoint) => endpoint.method === request.method)
        ? request.method
        : 'other';
      metrics.end(method, endpoints[0]?.path ?? 'none', status, (performance.now() - startedMs) / 1000);
    };
    let isHeld = false;
    const hold: Exchange['hold'] = () => {
      isHeld = true;
      return (outcome) => end(OUTCOME_STATUS[outcome]);
    };

    const answer = async (): Promise<WireResponse> => {
      if (endpoints.length === 0) throw new OnpolicyError('NOT_FOUND', 'there is no such endpoint');
      const methods = endpoints.map(({ method }) => method);
      if (request.method === 'OPTIONS') return preflight(request, methods, settings.corsOrigins);
      const endpoint = endpoints.find(({ method }) => method === request.method);
      if (!endpoint) return notAllowed(methods, formOf(path));
      if (onIdle) throw new OnpolicyError('CLOSED', 'the server is closing');
      const scopes = endpoint.scopes === null ? [] : authorize(request);
      if (endpoint.scopes !== null && !allows(scopes, endpoint.scopes))
        throw new OnpolicyError('FORBIDDEN', `the token needs the scope ${endpoint.scopes.join(' or ')}`);
      return await work[endpoint.name]({
        request,
        id,
        scopes,
        requestId,
        isIdGiven,
        call: { signal },
        service,
        settings,
        metrics,
        toError: (error) => toError(error, signal, requestId),
        hold,
      });
    };

    const response = await answer().catch((error: unknown) =>
      errorResponse(toError(error, signal, requestId), formOf(path)),
    );
    if (!isHeld) end(response.status);
    Object.assign(response.headers, corsHeaders(request, settings.corsOrigins), {
      'x-request-id': requestId,
    });
    if (onIdle) response.headers['connection'] = 'close';
    return response;
  };

  return {
    handle,
    drain: () =>
      new Promise((resolve) => {
        onIdle = resolve;
        if (running.size === 0) resolve();
      }),
    abort: () => {
      for (const controller of running)
        controller.abort(new OnpolicyError('CLOSED', 'the server is closing'));
    },
  };
}

/** How a stream ended, as a status would say it. */
const OUTCOME_STATUS = { complete: 200, failed: 500, left: 499 } as const;

function withoutBase(path: string, base: string): string {
  if (base === '') return path;
  return path.startsWith(`${base}/`) ? path.slice(base.length) : '';
}

function errorResponse(error: OnpolicyError, form: ErrorForm): WireResponse {
  const { status, body } = toErrorBody(error, form);
  const headers: Record<string, string> = { [CODE_HEADER]: error.code };
  if (status === 401) headers['www-authenticate'] = 'Bearer';
  if (status === 503) headers['retry-after'] = '1';
  if (status === 408 || status === 413) headers['connection'] = 'close'; // the rest of the body is not read
  return json(body, status, headers);
}

function notAllowed(methods: readonly string[], form: ErrorForm): WireResponse {
  const error = new OnpolicyError('UNSUPPORTED', `expected the method ${methods.join(' or ')}`);
  const { body } = toErrorBody(error, form);
  const headers = { [CODE_HEADER]: error.code, allow: methods.join(', ') };
  return json(body, 405, headers);
}
