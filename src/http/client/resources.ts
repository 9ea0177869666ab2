/** A server -> its models, checkpoints, training jobs and training runs, by the endpoints of their methods. */
import {
  type ListQuery,
  type LogResult,
  type TrainingRunInfo,
  validateListQuery,
  validateLogRequest,
} from '../../protocol/index.ts';
import type { CallOptions, Service, TrainingRunsResource } from '../../service.ts';
import { JOBS, MODELS, RESOURCE_ROWS, type ResourceName, type ResourceRow, RUNS } from '../resource-rows.ts';
import type { RetryingClient } from './retrying-client.ts';

export type Resources = Pick<Service, Exclude<ResourceName, 'trainingRuns'>> & {
  readonly trainingRuns: TrainingRunsResource;
};

/** Those of a server. */
export function remoteResources(client: RetryingClient): Resources {
  const of = <Name extends ResourceName>(resource: Name): Resources[Name] => {
    const rows = RESOURCE_ROWS.filter(([name]) => name === resource);
    return Object.fromEntries(rows.map((row) => [row[1], callOf(client, row)])) as never;
  };
  const ask = <T>(path: string, query: object | undefined, options?: CallOptions): Promise<T> =>
    send(client, 'GET', path + inUrl(query), undefined, options, true);
  return {
    models: {
      ...of('models'),
      async log(id, request, options) {
        client.requireOpen();
        return await logTrajectories(client, id, validateLogRequest(request), options);
      },
    },
    checkpoints: of('checkpoints'),
    trainingJobs: {
      ...of('trainingJobs'),
      async events(id, query: ListQuery | undefined, options) {
        validateListQuery(query);
        return await ask(withId(`${JOBS}/{id}/events`, id), query, options);
      },
    },
    trainingRuns: {
      ...of('trainingRuns'),
      list: async (options) => (await ask<{ data: TrainingRunInfo[] }>(RUNS, undefined, options)).data,
      call: async (id, operation, request, options) => {
        const isRepeatable = request.idempotency_key != null;
        return send(client, 'POST', withId(`${RUNS}/{id}/${operation}`, id), request, options, isRepeatable);
      },
      result: async (id, query, options) => ask(withId('/v1/training/requests/{id}', id), query, options),
    },
  };
}

/** Sends trajectories, which were checked. */
export function logTrajectories(
  client: RetryingClient,
  id: string,
  request: object,
  options?: CallOptions,
): Promise<LogResult> {
  return send(client, 'POST', withId(`${MODELS}/{id}/log`, id), request, options);
}

/** Sends a call that may change the server's state. It is repeated only if it certainly had no effect, or `isRepeatable`. */
export function send<T>(
  client: RetryingClient,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  body: object | undefined,
  { signal }: CallOptions = {},
  isRepeatable = false,
): Promise<T> {
  const content = body ? { body: JSON.stringify(body) } : {};
  return client.json({ method, path, ...content, signal, isRepeatable });
}

/** The method of a row. */
function callOf(client: RetryingClient, [, , method, path, , check]: ResourceRow) {
  const hasId = path.includes('{id}');
  return async (...args: unknown[]): Promise<unknown> => {
    client.requireOpen();
    const at = hasId ? withId(path, String(args.shift())) : path;
    const input = check ? (args.shift() as { return_existing?: unknown } | undefined) : undefined;
    check?.(input);
    const options = args[0] as CallOptions | undefined;
    if (method === 'GET') return await send(client, method, at + inUrl(input), undefined, options, true);
    const isRepeatable = method === 'POST' && (!check || input?.return_existing === true);
    return await send(client, method, at, input, options, isRepeatable);
  };
}

function withId(path: string, id: string): string {
  return path.replace('{id}', () => encodeURIComponent(id));
}

function inUrl(query: object | undefined): string {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null);
  const text = new URLSearchParams(given.map(([key, value]): [string, string] => [key, String(value)]));
  return given.length === 0 ? '' : `?${text}`;
}
