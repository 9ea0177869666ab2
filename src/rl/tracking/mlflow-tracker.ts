/** Runs -> an MLflow tracking server, over its REST API 2.0. */
import { parseJson } from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';
import type { Model, RunRecord, TrackedMetrics, Tracker } from '../../protocol/index.ts';

/** Options of {@link mlflowTracker}. */
export type MlflowOptions = {
  /** URL of the server, for example `http://localhost:5000`. */
  readonly url: string;
  /** Experiment of the runs; created if missing. Default `onpolicy`. */
  readonly experiment?: string;
  /** Sent as a bearer token. */
  readonly token?: string;
  /** Additional headers of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Timeout of a request in milliseconds. Default 10,000. */
  readonly timeoutMs?: number;
};

/** Limits of one request. */
const MOST_METRICS = 1000;
const MOST_TAGS = 100;
const LONGEST_KEY = 250;
const LONGEST_VALUE = 5000;

/** A tracker that stores runs in MLflow. The first request is sent with the first run. */
export function mlflowTracker(options: MlflowOptions): Tracker {
  const { experiment = 'onpolicy' } = options;
  const call = caller(options);
  let experimentId: Promise<string> | null = null;
  const findExperiment = async () => {
    const query = `experiments/get-by-name?experiment_name=${encodeURIComponent(experiment)}`;
    const found = await call<{ experiment: { experiment_id: string } }>('GET', query).catch(ifAbsent);
    if (found) return found.experiment.experiment_id;
    const made = await call<{ experiment_id: string }>('POST', 'experiments/create', { name: experiment });
    return made.experiment_id;
  };
  return {
    name: `mlflow ${options.url}`,
    startRun: async (model: Model, run: RunRecord) => {
      experimentId ??= findExperiment();
      const id = await experimentId.catch((error: unknown) => {
        experimentId = null; // the next run tries again
        throw error;
      });
      const { run: started } = await call<{ run: { info: { run_id: string } } }>('POST', 'runs/create', {
        experiment_id: id,
        run_name: model.name ?? model.id,
        start_time: run.created * 1000,
        tags: toPairs({ model_id: model.id, base_model: model.base_model, ...run.system }),
      });
      return started.info.run_id;
    },
    log: async (runId, records, config) => {
      const metrics = records.flatMap(toMetrics);
      // Settings may change from job to job: tags may be overwritten, parameters may not.
      const tags = toPairs(config).slice(0, MOST_TAGS);
      if (tags.length > 0) await call('POST', 'runs/log-batch', { run_id: runId, tags });
      for (let i = 0; i < metrics.length; i += MOST_METRICS)
        await call('POST', 'runs/log-batch', {
          run_id: runId,
          metrics: metrics.slice(i, i + MOST_METRICS),
        }).catch(ifRefused);
    },
    deleteRun: async (runId) => {
      await call('POST', 'runs/delete', { run_id: runId }).catch(ifAbsent);
    },
  };
}

function toMetrics({ step, timeMs, metrics }: TrackedMetrics) {
  return Object.entries(metrics)
    .filter(([, value]) => Number.isFinite(value)) // JSON has no other numbers
    .map(([name, value]) => ({ key: toMetricKey(name), value, timestamp: timeMs, step }));
}

function toPairs(values: Readonly<Record<string, unknown>>): { key: string; value: string }[] {
  return Object.entries(values)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([key, value]) => ({
      key: toKey(key),
      value: (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, LONGEST_VALUE),
    }));
}

/** A name with only characters that MLflow accepts. */
function toKey(name: string): string {
  return name.replace(/[^\w\-. /]/g, '_').slice(0, LONGEST_KEY);
}

/** Does the same for a metric, whose name MLflow also uses as a path: no part of it may be empty, `.` or `..`. */
function toMetricKey(name: string): string {
  const parts = toKey(name)
    .slice(0, LONGEST_KEY - 1)
    .split('/')
    .map((part) => (part === '' || part === '.' || part === '..' ? part.replaceAll('.', '_') || '_' : part));
  return parts.join('/').slice(0, LONGEST_KEY).replace(/\/$/, '');
}

type Call = <Result>(method: 'GET' | 'POST', path: string, body?: object) => Promise<Result>;

function caller({ url, token, headers = {}, timeoutMs = 10_000 }: MlflowOptions): Call {
  const base = `${url.replace(/\/+$/, '')}/api/2.0/mlflow/`;
  return async (method, path, body) => {
    const response = await fetch(base + path, {
      method,
      headers: {
        ...headers,
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body ? { 'content-type': 'application/json' } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
      signal: AbortSignal.timeout(timeoutMs),
    }).catch((cause: unknown) => {
      throw new OnpolicyError('NETWORK_FAILED', `MLflow at ${url} cannot be reached`, { cause });
    });
    const text = await response.text();
    if (response.ok) return JSON.parse(text || '{}');
    const answer = parseJson(text) as { error_code?: string } | null | undefined; // undefined for example for a proxy's HTML page
    const cause = { error_code: answer?.error_code };
    const message = `MLflow refused ${path}: ${response.status} ${text.slice(0, 300)}`;
    throw new OnpolicyError('NETWORK_FAILED', message, { cause });
  };
}

/** An error handler that returns null if MLflow reports that the object does not exist. */
function ifAbsent(error: unknown): null {
  const { error_code } = ((error as Error).cause ?? {}) as { error_code?: string };
  if (error_code === 'RESOURCE_DOES_NOT_EXIST') return null;
  throw error;
}

/** An error handler that distinguishes metrics that MLflow rejects from a server that cannot be reached. */
function ifRefused(error: unknown): never {
  const { error_code } = ((error as Error).cause ?? {}) as { error_code?: string };
  if (error_code !== 'INVALID_PARAMETER_VALUE' && error_code !== 'BAD_REQUEST') throw error;
  throw new OnpolicyError('INVALID_REQUEST', (error as Error).message, { cause: error });
}
