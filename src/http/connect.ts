/** A server's address -> the service that it offers: the same contract as in process, over HTTP. */

import { ChatCompletionStream } from '../answer/index.ts';
import { OnpolicyError } from '../errors.ts';
import {
  type ChatCompletion,
  type ChatCompletionRequest,
  type CheckpointDeleteRequest,
  checkChatRequest,
  type ListQuery,
  type LogRequest,
  type ModelCreateRequest,
  type TrainingJobRequest,
  validateCheckpointDeleteRequest,
  validateListQuery,
  validateLogRequest,
  validateModelCreateRequest,
  validateTrainingJobRequest,
} from '../protocol/index.ts';
import type {
  CallOptions,
  CheckpointsResource,
  ModelsResource,
  Service,
  TrainingJob,
  TrainingJobsResource,
} from '../service.ts';
import { type ConnectOptions, checkConnectOptions, type TransportSettings } from './connect-options.ts';
import { fromEventStream } from './event-stream.ts';
import { RemoteJob } from './remote-job.ts';
import { type OpenResponse, type RemoteCall, Transport } from './transport.ts';

/**
 * The service that a server offers: vLLM, another process with this library, or whatever else has these endpoints. Requests
 * are checked here as in process, and errors are the same. Of a server that only answers completions, all other methods
 * reject with `UNSUPPORTED`.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options
 */
export function connect(options: ConnectOptions): Service {
  return new RemoteService(checkConnectOptions(options));
}

/** A service at the other end of a wire. */
class RemoteService implements Service {
  readonly #transport: Transport;
  readonly #pollMs: number;
  readonly models: ModelsResource;
  readonly checkpoints: CheckpointsResource;
  readonly trainingJobs: TrainingJobsResource;

  constructor(settings: TransportSettings) {
    this.#transport = new Transport(settings);
    this.#pollMs = settings.pollMs;
    this.models = remoteModels(this.#transport);
    this.checkpoints = remoteCheckpoints(this.#transport);
    this.trainingJobs = remoteTrainingJobs(this.#transport);
  }

  createCompletion(
    request: ChatCompletionRequest & { stream: true },
    options?: CallOptions,
  ): Promise<ChatCompletionStream>;
  createCompletion(
    request: ChatCompletionRequest & { stream?: false | null },
    options?: CallOptions,
  ): Promise<ChatCompletion>;
  createCompletion(
    request: ChatCompletionRequest,
    options?: CallOptions,
  ): Promise<ChatCompletion | ChatCompletionStream>;
  async createCompletion(
    request: ChatCompletionRequest,
    { signal }: CallOptions = {},
  ): Promise<ChatCompletion | ChatCompletionStream> {
    this.#transport.requireOpen();
    checkChatRequest(request, { scheduling: 'priority' }); // what a server refuses it says itself
    refuseFunctions(request);
    const call: RemoteCall = {
      method: 'POST',
      path: '/v1/chat/completions',
      body: toJson(request),
      signal,
      isRepeatable: true, // an answer leaves nothing behind
      isStream: request.stream === true,
    };
    if (!request.stream) return await this.#transport.json<ChatCompletion>(call);
    return toStream(await this.#transport.open(call));
  }

  async train(request: TrainingJobRequest, { signal }: CallOptions = {}): Promise<TrainingJob> {
    this.#transport.requireOpen();
    validateTrainingJobRequest(request);
    const path = '/v1/preview/training-jobs';
    const call: RemoteCall = {
      method: 'POST',
      path,
      body: JSON.stringify(request),
      signal,
      isRepeatable: false,
    };
    const { id } = await this.#transport.json<{ id: string }>(call);
    return new RemoteJob(id, request.model_id, this, this.#pollMs);
  }

  async close(): Promise<void> {
    this.#transport.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function remoteModels(transport: Transport): ModelsResource {
  const path = (id: string): string => `/v1/preview/models/${encodeURIComponent(id)}`;
  return {
    async create(request: ModelCreateRequest, { signal }: CallOptions = {}) {
      transport.requireOpen();
      validateModelCreateRequest(request);
      const isRepeatable = request.return_existing === true;
      return transport.json({
        method: 'POST',
        path: '/v1/preview/models',
        body: JSON.stringify(request),
        signal,
        isRepeatable,
      });
    },
    async retrieve(id, { signal } = {}) {
      return transport.json({ method: 'GET', path: path(id), signal, isRepeatable: true });
    },
    async list(query, { signal } = {}) {
      return transport.json({
        method: 'GET',
        path: `/v1/preview/models${toQuery(query)}`,
        signal,
        isRepeatable: true,
      });
    },
    async delete(id, { signal } = {}) {
      return transport.json({ method: 'DELETE', path: path(id), signal, isRepeatable: false });
    },
    async log(id, request: LogRequest, { signal } = {}) {
      transport.requireOpen();
      validateLogRequest(request);
      return transport.json({
        method: 'POST',
        path: `${path(id)}/log`,
        body: JSON.stringify(request),
        signal,
        isRepeatable: false,
      });
    },
  };
}

function remoteCheckpoints(transport: Transport): CheckpointsResource {
  const path = (id: string): string => `/v1/preview/models/${encodeURIComponent(id)}/checkpoints`;
  return {
    async list(id, query, { signal } = {}) {
      return transport.json({ method: 'GET', path: path(id) + toQuery(query), signal, isRepeatable: true });
    },
    async delete(id, request: CheckpointDeleteRequest, { signal } = {}) {
      transport.requireOpen();
      validateCheckpointDeleteRequest(request);
      return transport.json({
        method: 'DELETE',
        path: path(id),
        body: JSON.stringify(request),
        signal,
        isRepeatable: false,
      });
    },
  };
}

function remoteTrainingJobs(transport: Transport): TrainingJobsResource {
  const path = (id: string): string => `/v1/preview/training-jobs/${encodeURIComponent(id)}`;
  return {
    async retrieve(id, { signal } = {}) {
      return transport.json({ method: 'GET', path: path(id), signal, isRepeatable: true });
    },
    async events(id, query, { signal } = {}) {
      return transport.json({
        method: 'GET',
        path: `${path(id)}/events${toQuery(query)}`,
        signal,
        isRepeatable: true,
      });
    },
    async cancel(id, { signal } = {}) {
      return transport.json({ method: 'POST', path: `${path(id)}/cancel`, signal, isRepeatable: true });
    },
  };
}

/** A list query as the end of a URL. Throws `INVALID_REQUEST`, as in process. */
function toQuery(query: ListQuery | undefined): string {
  validateListQuery(query);
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null);
  return given.length === 0
    ? ''
    : `?${new URLSearchParams(given.map(([key, value]): [string, string] => [key, String(value)]))}`;
}

/** JSON, with every digit of a seed that is a bigint. */
function toJson(request: ChatCompletionRequest): string {
  if (typeof request.seed !== 'bigint') return JSON.stringify(request);
  const { seed, ...rest } = request;
  return `${JSON.stringify(rest).slice(0, -1)},"seed":${seed}}`;
}

function refuseFunctions({ logits_processors: processors }: ChatCompletionRequest): void {
  const index = processors?.findIndex((processor) => typeof processor === 'function') ?? -1;
  if (index < 0) return;
  const param = `logits_processors.${index}`;
  throw new OnpolicyError(
    'UNSUPPORTED',
    `${param}: a function cannot be sent to a server; name a registered one`,
    {
      param,
    },
  );
}

/** The chunks of a response. Leaving the loop ends the request at the server, too. */
function toStream(open: OpenResponse): ChatCompletionStream {
  const { response, stop, end } = open;
  const type = response.header('content-type') ?? '';
  if (!type.startsWith('text/event-stream')) {
    stop(new OnpolicyError('ABORTED', 'not a stream'));
    end();
    throw new OnpolicyError('NETWORK_FAILED', `expected a stream, the server sent ${type || 'nothing'}`);
  }
  return new ChatCompletionStream(fromEventStream(open), () =>
    stop(new OnpolicyError('ABORTED', 'the stream was aborted')),
  );
}
