/** A server's URL -> its service, with the same contract as in process. */

import { ChatCompletionStream, TextCompletionStream } from '../../answer/index.ts';
import { CheckedTrainingService, INNER, type InnerService } from '../../checked-service.ts';
import { OnpolicyError } from '../../errors.ts';
import {
  type ChatCompletion,
  type ChatCompletionRequest,
  type CheckedLogRequest,
  type ConnectOptions,
  checkCallOptions,
  checkRequest,
  checkSftRequest,
  type ListQuery,
  type LogResult,
  replaceBytes,
  type SftRequest,
  type TextCompletion,
  type TextCompletionRequest,
  type TrainingRunInfo,
  type TranscriptionRequest,
  toDataUri,
  validateCheckpointDeleteRequest,
  validateJobListQuery,
  validateListQuery,
  validateLogRequest,
  validateModelCreateRequest,
} from '../../protocol/index.ts';
import { RemoteJob } from '../../remote-job.ts';
import type {
  CallOptions,
  CheckpointsResource,
  ConnectedService,
  ModelsResource,
  TrainingJob,
  TrainingJobsResource,
  TrainingRunsResource,
  TranscriptionAnswer,
} from '../../service.ts';
import { BACKGROUND_HEADER } from '../headers.ts';
import { type ClientSettings, checkConnectOptions } from './connect-options.ts';
import { fromEventStream } from './event-stream.ts';
import { textOf } from './http-client.ts';
import { type RemoteCall, RetryingClient } from './retrying-client.ts';
import { askTranscription } from './transcriptions.ts';

/**
 * Returns the service of a server: vLLM, another process with this library, or any server with these endpoints. Requests are validated
 * here, with the same errors as in process. If the server only answers completions, all other methods reject with `UNSUPPORTED`.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options
 */
export function connect(options: ConnectOptions): ConnectedService {
  return new RemoteService(checkConnectOptions(options));
}

/** A service whose methods are calls of a server's endpoints. */
class RemoteService extends CheckedTrainingService implements ConnectedService {
  readonly #client: RetryingClient;
  readonly #pollMs: number;
  readonly #withoutTranscripts = new Set<string | null>(); // models
  readonly models: ModelsResource;
  readonly checkpoints: CheckpointsResource;
  readonly trainingJobs: TrainingJobsResource;
  readonly trainingRuns: TrainingRunsResource;
  readonly [INNER]: InnerService = {
    chat: (request, options) =>
      this.#complete<ChatCompletion, ChatCompletionStream>(
        completionCall('/v1/chat/completions', request, options),
        ChatCompletionStream,
      ),
    text: (request, options) =>
      this.#complete<TextCompletion, TextCompletionStream>(
        completionCall('/v1/completions', request, options),
        TextCompletionStream,
      ),
    embed: (request, options) => this.#ask('/v1/embeddings', request, options),
    rerank: (request, options) => this.#ask('/v1/rerank', request, options),
    score: (request, options) => this.#ask('/v1/score', request, options),
    classify: (request, options) => this.#ask('/v1/classify', request, options),
    train: async (request, options) => {
      const { id } = await send<{ id: string }>(
        this.#client,
        'POST',
        '/v1/preview/training-jobs',
        request,
        options,
      );
      return new RemoteJob(id, request.model_id, this, this.#pollMs);
    },
    log: (id, request, options) => logTrajectories(this.#client, id, request, options),
  };

  constructor(settings: ClientSettings) {
    super();
    this.#client = new RetryingClient(settings);
    this.#pollMs = settings.pollMs;
    this.models = remoteModels(this.#client);
    this.checkpoints = remoteCheckpoints(this.#client);
    this.trainingJobs = remoteTrainingJobs(this.#client);
    this.trainingRuns = remoteTrainingRuns(this.#client);
  }

  protected enter(): void {
    this.#client.requireOpen();
  }

  #ask<Answer>(path: string, request: object, options: CallOptions): Promise<Answer> {
    const [body, headers] = [JSON.stringify(request), headersOf(options)];
    const { signal } = options;
    return this.#client.json({ method: 'POST', path, body, headers, signal, isRepeatable: true });
  }

  /** @internal Asks the server's endpoint of transcripts; where it has none for the model, only once. */
  async transcription(
    request: TranscriptionRequest,
    options: CallOptions,
  ): Promise<TranscriptionAnswer | null> {
    const { model = null } = request;
    if (this.#withoutTranscripts.has(model)) return null;
    const answer = await askTranscription(this.#client, request, options, headersOf(options));
    if (answer === null) this.#withoutTranscripts.add(model);
    return answer;
  }

  async #complete<Whole, Stream>(
    call: RemoteCall,
    Parts: new (parts: AsyncIterator<never>, stop: () => void) => Stream,
  ): Promise<Whole | Stream> {
    if (!call.isStream) return await this.#client.json<Whole>(call);
    const open = await this.#client.open(call);
    const type = open.response.header('content-type') ?? '';
    const stop = (why: string) => open.stop(new OnpolicyError('ABORTED', why));
    if (type.startsWith('text/event-stream'))
      return new Parts(fromEventStream(open), () => stop('the stream was aborted'));
    stop('not a stream');
    open.end();
    throw new OnpolicyError('NETWORK_FAILED', `expected a stream, the server sent ${type || 'nothing'}`);
  }

  async sft(request: SftRequest, options: CallOptions = {}): Promise<TrainingJob> {
    this.enter();
    checkCallOptions(options);
    checkSftRequest(request);
    const path = '/v1/preview/sft-training-jobs';
    const { id } = await send<{ id: string }>(this.#client, 'POST', path, request, options);
    return new RemoteJob(id, request.model_id, this, this.#pollMs);
  }

  async loadAdapter(
    { name, path }: { readonly name: string; readonly path: string },
    options?: CallOptions,
  ): Promise<void> {
    await this.#changeAdapters('load', { lora_name: name, lora_path: path }, options);
  }

  async unloadAdapter(name: string, options?: CallOptions): Promise<void> {
    await this.#changeAdapters('unload', { lora_name: name }, options);
  }

  /** The server answers with a text of its own. */
  async #changeAdapters(what: 'load' | 'unload', body: object, { signal }: CallOptions = {}): Promise<void> {
    const path = `/v1/${what}_lora_adapter`;
    const call = { method: 'POST', path, body: JSON.stringify(body), signal, isRepeatable: false } as const;
    const { response, end } = await this.#client.open(call);
    try {
      await textOf(response.body);
    } finally {
      end();
    }
  }

  async close(): Promise<void> {
    this.#client.close();
  }
}

const MODELS = '/v1/preview/models';

function modelPath(id: string): string {
  return `${MODELS}/${encodeURIComponent(id)}`;
}

function logTrajectories(
  client: RetryingClient,
  id: string,
  request: CheckedLogRequest,
  options?: CallOptions,
): Promise<LogResult> {
  return send(client, 'POST', `${modelPath(id)}/log`, request, options);
}

function remoteModels(client: RetryingClient): ModelsResource {
  return {
    async create(request, options) {
      client.requireOpen();
      validateModelCreateRequest(request);
      return send(client, 'POST', MODELS, request, options, request.return_existing === true);
    },
    retrieve: async (id, options) => get(client, modelPath(id), options),
    list: async (query, options) => get(client, MODELS + toQuery(query), options),
    delete: async (id, options) => send(client, 'DELETE', modelPath(id), undefined, options),
    async log(id, request, options) {
      client.requireOpen();
      return logTrajectories(client, id, validateLogRequest(request), options);
    },
  };
}

function remoteCheckpoints(client: RetryingClient): CheckpointsResource {
  const path = (id: string): string => `${modelPath(id)}/checkpoints`;
  return {
    list: async (id, query, options) => get(client, path(id) + toQuery(query), options),
    async delete(id, request, options) {
      client.requireOpen();
      validateCheckpointDeleteRequest(request);
      return send(client, 'DELETE', path(id), request, options);
    },
  };
}

function remoteTrainingJobs(client: RetryingClient): TrainingJobsResource {
  const all = '/v1/preview/training-jobs';
  const path = (id: string): string => `/v1/preview/training-jobs/${encodeURIComponent(id)}`;
  return {
    list: async (query, options) => {
      validateJobListQuery(query);
      return get(client, all + inUrl(query), options);
    },
    retrieve: async (id, options) => get(client, path(id), options),
    events: async (id, query, options) => get(client, `${path(id)}/events${toQuery(query)}`, options),
    cancel: async (id, options) => send(client, 'POST', `${path(id)}/cancel`, undefined, options, true),
  };
}

function remoteTrainingRuns(client: RetryingClient): TrainingRunsResource {
  const all = '/v1/training/runs';
  const path = (id: string): string => `${all}/${encodeURIComponent(id)}`;
  return {
    async create(request, options) {
      client.requireOpen();
      checkRequest('TrainingRunRequest', request, {});
      return send(client, 'POST', all, request, options);
    },
    list: async (options) => (await get<{ data: readonly TrainingRunInfo[] }>(client, all, options)).data,
    retrieve: async (id, options) => get(client, path(id), options),
    call: async (id, operation, request, options) =>
      send(client, 'POST', `${path(id)}/${operation}`, request, options, request.idempotency_key != null),
    result: async (requestId, query, options) =>
      get(client, `/v1/training/requests/${encodeURIComponent(requestId)}${inUrl(query)}`, options),
    close: async (id, options) => send(client, 'POST', `${path(id)}/close`, undefined, options, true),
    delete: async (id, options) => send(client, 'DELETE', path(id), undefined, options),
  };
}

function get<T>(client: RetryingClient, path: string, { signal }: CallOptions = {}): Promise<T> {
  return client.json({ method: 'GET', path, signal, isRepeatable: true });
}

/** Sends a call that changes the server's state. It is repeated only if it certainly had no effect, or `isRepeatable`. */
function send<T>(
  client: RetryingClient,
  method: 'POST' | 'DELETE',
  path: string,
  body: object | undefined,
  { signal }: CallOptions = {},
  isRepeatable = false,
): Promise<T> {
  return client.json({
    method,
    path,
    ...(body ? { body: JSON.stringify(body) } : {}),
    signal,
    isRepeatable,
  });
}

/** A list query as the query of a URL. Throws `INVALID_REQUEST`, as in process. */
function toQuery(query: ListQuery | undefined): string {
  validateListQuery(query);
  return inUrl(query);
}

function inUrl(query: object | undefined): string {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null);
  return given.length === 0
    ? ''
    : `?${new URLSearchParams(given.map(([key, value]): [string, string] => [key, String(value)]))}`;
}

/** The call of a completion, which changes no state of the server. */
function completionCall(
  path: string,
  request: ChatCompletionRequest | TextCompletionRequest,
  options: CallOptions,
): RemoteCall {
  refuseFunctions(request);
  const isStream = request.stream === true;
  const [body, headers] = [toJson(request), headersOf(options)];
  return { method: 'POST', path, body, headers, signal: options.signal, isRepeatable: true, isStream };
}

function headersOf({ traceId, background }: CallOptions): Readonly<Record<string, string>> {
  return {
    ...(traceId === undefined ? {} : { 'x-request-id': traceId }),
    ...(background ? { [BACKGROUND_HEADER]: 'true' } : {}),
  };
}

/** JSON with all digits of a seed of type bigint. */
function toJson(request: ChatCompletionRequest | TextCompletionRequest): string {
  const whole =
    'messages' in request ? { ...request, messages: replaceBytes(request.messages, toDataUri) } : request;
  if (typeof request.seed !== 'bigint') return JSON.stringify(whole);
  const { seed, ...rest } = whole;
  return `${JSON.stringify(rest).slice(0, -1)},"seed":${seed}}`;
}

function refuseFunctions({
  logits_processors: processors,
}: Pick<ChatCompletionRequest, 'logits_processors'>): void {
  const index = processors?.findIndex((processor) => typeof processor === 'function') ?? -1;
  if (index < 0) return;
  const param = `logits_processors.${index}`;
  const text = `${param}: a function cannot be sent to a server; name a registered one`;
  throw new OnpolicyError('UNSUPPORTED', text, { param });
}
