/** One request with all that an endpoint needs to answer it, and what endpoints read of it. */
import type { BatchStore, RowsFor } from '../../batch-store/index.ts';
import { OnpolicyError } from '../../errors.ts';
import { type Scope, type ValidationOptions, validateListQuery } from '../../protocol/index.ts';
import type { Outcome } from './event-stream.ts';
import type { HandlerSettings, Servable } from './handler-options.ts';
import type { RequestMetrics } from './metrics.ts';
import type { WireRequest, WireResponse } from './wire.ts';

/** The request, its caller's rights, and what runs for it. */
export type RequestContext = {
  readonly request: WireRequest;
  /** Reads the body as JSON. Throws `TOO_LARGE`, `TIMEOUT`, `ABORTED`, and `INVALID_REQUEST` if it is none. */
  readonly body: () => Promise<unknown>;
  /** How bodies are checked. Only the endpoint holds a body: its unknown fields are deleted. */
  readonly validation: ValidationOptions;
  /** The segment at `{id}` in the path. */
  readonly id: string;
  readonly scopes: readonly Scope[];
  /** Says the id of the request, once its body has one. */
  readonly setRequestId: (id: string) => void;
  /** Its signal fires when the client disconnects, time is up or the server stops. Its id is the client's own or random. */
  readonly call: {
    readonly signal: AbortSignal;
    readonly traceId: string;
    readonly clientKey: string;
    readonly background: boolean;
  };
  /** Whether the client has a limit on tokens. */
  readonly isLimited: boolean;
  /** Counts tokens for the limits of the client. */
  readonly charge: (tokens: number) => void;
  readonly service: Servable;
  readonly settings: HandlerSettings;
  readonly metrics: RequestMetrics;
  /** Opens the files and batches of this server. Throws `UNSUPPORTED` where it has none. */
  readonly openBatches: () => Promise<BatchStore>;
  /** Answers rows of batches as requests of their client. */
  readonly rowsFor: RowsFor;
  readonly toError: (error: unknown) => OnpolicyError;
  /** Marks the response as a stream. The function that it returns must be called at the end of the stream. */
  readonly beginStream: () => (outcome: Outcome) => void;
};

export type EndpointHandler = (context: RequestContext) => Promise<WireResponse>;

/** The error of a service that lacks what an endpoint needs. */
export function unsupported(what: string): OnpolicyError {
  return new OnpolicyError('UNSUPPORTED', `this server does not serve ${what}`);
}

/** Throws `TOO_LARGE` for a body with too many of something. */
export function limit(what: string, count: number, most: number): void {
  if (count > most) throw new OnpolicyError('TOO_LARGE', `${what}: expected at most ${most}, got ${count}`);
}

/** The same for the entries of a list in a body that was not checked. */
export function limitList(body: unknown, field: string, most: number): void {
  const { [field]: list } = (body ?? {}) as Readonly<Record<string, unknown>>;
  if (Array.isArray(list)) limit(field, list.length, most);
}

/** Which page of a list the query of the URL asks for. */
export function listQuery(context: RequestContext): ReturnType<typeof validateListQuery> {
  return validateListQuery(queryOf(context), { wire: true });
}

/** The query of the URL, its limit as a number. */
export function queryOf({ request }: RequestContext): object {
  const { limit, ...query } = Object.fromEntries(request.url.searchParams);
  const count = limit !== undefined && /^\d{1,9}$/.test(limit) ? Number(limit) : limit;
  return { ...query, ...(limit === undefined ? {} : { limit: count }) };
}
