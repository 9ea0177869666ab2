/** One request with all that an endpoint needs to answer it, and what endpoints read of it. */

import { errorAt, OnpolicyError } from '../../../errors.ts';
import { checkListQuery, type Scope, type ValidationOptions } from '../../../protocol/index.ts';
import type { BatchStore, RowsFor } from '../../batch/store/index.ts';
import type { Outcome } from './event-stream.ts';
import type { HandlerSettings, Servable } from './handler-options.ts';
import type { RequestMetrics } from './metrics.ts';
import type { RunningStreams } from './running-streams.ts';
import type { ServedRequest, ServedResponse } from './wire.ts';

/** The request, its client's rights, and what endpoints call while it runs. */
export type RequestContext = {
  readonly request: ServedRequest;
  readonly url: URL;
  /** Reads the body as JSON. Throws `TOO_LARGE`, `TIMEOUT`, `ABORTED`, and `INVALID_REQUEST` if it is not JSON. */
  readonly body: () => Promise<unknown>;
  /** Reads the body as it is, decompressed. Throws `TOO_LARGE`, `TIMEOUT`, `ABORTED`, and `INVALID_REQUEST` for an unknown encoding. */
  readonly bytes: () => Promise<Uint8Array>;
  /** Options of the check of bodies. Unknown fields are deleted in place, because only the endpoint holds the body. */
  readonly validation: ValidationOptions;
  /** The segment at `{id}` in the path. */
  readonly id: string;
  readonly scopes: readonly Scope[];
  /** Sets the id of the request in traces, once its body was read and has one. */
  readonly setRequestId: (id: string) => void;
  /** Its signal fires when the client disconnects, time is up or the server stops. Its id is the client's own or random. */
  readonly call: {
    readonly signal: AbortSignal;
    readonly traceId: string;
    readonly clientKey: string;
    readonly cacheSalt?: string;
    readonly background: boolean;
  };
  /** True if the client has a limit on tokens. */
  readonly isLimited: boolean;
  /**
   * Reserves the tokens that a body may use, for bodies that were not read with `body`. Throws `OVERLOADED` if the client has too few left.
   */
  readonly reserve: (body: unknown) => Promise<void>;
  /** Counts tokens for the limits of the client. */
  readonly charge: (tokens: number) => void;
  readonly service: Servable;
  readonly settings: HandlerSettings;
  readonly metrics: RequestMetrics;
  /** The streams of chats that run now. */
  readonly streams: RunningStreams;
  /** Opens the files and batches of this server. Throws `UNSUPPORTED` if it has none. */
  readonly openBatches: () => Promise<BatchStore>;
  /** Returns the function that answers the rows of a batch as requests of its client. */
  readonly rowsFor: RowsFor;
  readonly toError: (error: unknown) => OnpolicyError;
  /** Marks the response as a stream. The caller must call the returned function at the end of the stream. */
  readonly beginStream: () => (outcome: Outcome) => void;
};

export type EndpointHandler = (context: RequestContext) => Promise<ServedResponse>;

/** Returns the error of a service that does not support an endpoint. */
export function unsupported(what: string): OnpolicyError {
  return new OnpolicyError('UNSUPPORTED', `this server does not serve ${what}`);
}

/** Throws `TOO_LARGE` for a body with too many of something. */
export function limit(what: string, count: number, most: number): void {
  if (count > most) throw new OnpolicyError('TOO_LARGE', `${what}: expected at most ${most}, got ${count}`);
}

/** Throws `TOO_LARGE` for a list with too many entries, in a body that was not checked. `path`: the list as the caller names it. */
export function limitList(body: unknown, field: string, most: number, path = field): void {
  const { [field]: list } = (body ?? {}) as Readonly<Record<string, unknown>>;
  if (Array.isArray(list)) limit(path, list.length, most);
}

/** Throws `TOO_LARGE` for too many trajectories, or conversations in them, in a body that was not checked. */
export function limitTrajectories(body: unknown, { settings }: Pick<RequestContext, 'settings'>): void {
  const { trajectory_groups: groups } = (body ?? {}) as { trajectory_groups?: unknown };
  let count = 0;
  for (const group of Array.isArray(groups) ? groups : []) {
    const trajectories = (group as { trajectories?: unknown } | null)?.trajectories;
    count += Array.isArray(trajectories) ? trajectories.length : 0;
  }
  limit('trajectories', count, settings.maxTrajectories);
  limitConversations(body, settings.maxMessages);
}

/** Throws `TOO_LARGE` for a trajectory or a supervised example with too many messages, in a body that was not checked. */
export function limitConversations(body: unknown, most: number): void {
  const listOf = (owner: unknown, field: string): readonly unknown[] => {
    const { [field]: list } = (owner ?? {}) as Readonly<Record<string, unknown>>;
    return Array.isArray(list) ? list : [];
  };
  for (const [g, group] of listOf(body, 'trajectory_groups').entries())
    for (const [t, trajectory] of listOf(group, 'trajectories').entries()) {
      const at = `trajectory_groups.${g}.trajectories.${t}`;
      limit(`${at}.messages_and_choices`, listOf(trajectory, 'messages_and_choices').length, most);
      for (const [h, history] of listOf(trajectory, 'additional_histories').entries()) {
        const count = listOf(history, 'messages_and_choices').length;
        limit(`${at}.additional_histories.${h}.messages_and_choices`, count, most);
      }
    }
  for (const [d, example] of listOf(body, 'data').entries())
    limit(`data.${d}.messages`, listOf(example, 'messages').length, most);
}

/**
 * Returns the page of a list that the query of the URL asks for.
 * @param known further parameters that the endpoint reads itself
 */
export function listQuery(
  context: RequestContext,
  known: readonly string[] = [],
): ReturnType<typeof checkListQuery> {
  const own = Object.entries(queryOf(context)).filter(([name]) => !known.includes(name));
  return checkListQuery(Object.fromEntries(own), context.validation);
}

/** Cursors of other APIs, which are refused. If they were ignored, a client would read the first page for ever. */
const CURSORS = /^(starting_after|ending_before|before|after_id|before_id|cursor|offset|page|page_token)$/;

/** Returns the query of the URL, its limit as a number. Throws `INVALID_REQUEST` for cursors of other APIs. */
export function queryOf({ url }: RequestContext): object {
  const { limit, ...query } = Object.fromEntries(url.searchParams);
  const cursor = Object.keys(query).find((name) => CURSORS.test(name));
  if (cursor !== undefined)
    throw errorAt(
      cursor,
      'INVALID_REQUEST',
      'not a parameter of this list: expected `after`, the `last_id` of a page',
    );
  const count = limit !== undefined && /^\d{1,9}$/.test(limit) ? Number(limit) : limit;
  return { ...query, ...(limit === undefined ? {} : { limit: count }) };
}
