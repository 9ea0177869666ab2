/** A server's URL -> its service, with the same contract as in process. */

import { CheckedTrainingService, INNER } from '../../checked-service.ts';
import { errorAt, OnpolicyError } from '../../errors.ts';
import {
  type ConnectOptions,
  checkCallOptions,
  checkSftRequest,
  replaceBytes,
  type SftRequest,
  type TranscriptionRequest,
  toDataUri,
} from '../../protocol/index.ts';
import { RemoteJob } from '../../remote-job.ts';
import {
  type AnyRequest,
  type CallOptions,
  type ConnectedService,
  type InnerService,
  type Method,
  remoteMethods,
  type TrainingJob,
  type TranscriptionAnswer,
} from '../../service.ts';
import { BACKGROUND_HEADER } from '../headers.ts';
import { JOBS } from '../resource-rows.ts';
import { type ClientSettings, checkConnectOptions } from './connect-options.ts';
import { fromEventStream } from './event-stream.ts';
import { logTrajectories, type Resources, remoteResources, send } from './resources.ts';
import { type RemoteCall, RetryingClient, readAll } from './retrying-client.ts';
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
  readonly models: Resources['models'];
  readonly checkpoints: Resources['checkpoints'];
  readonly trainingJobs: Resources['trainingJobs'];
  readonly trainingRuns: Resources['trainingRuns'];
  readonly [INNER]: InnerService;

  constructor(settings: ClientSettings) {
    super();
    this.#client = new RetryingClient(settings);
    this.#pollMs = settings.pollMs;
    const { models, checkpoints, trainingJobs, trainingRuns } = remoteResources(this.#client);
    this.models = models;
    this.checkpoints = checkpoints;
    this.trainingJobs = trainingJobs;
    this.trainingRuns = trainingRuns;
    this[INNER] = {
      ...remoteMethods((_, method) => (request, options) => this.#answer(method, request, options)),
      train: (request, options) => this.#train(JOBS, request, options),
      log: (id, request, options) => logTrajectories(this.#client, id, request, options),
    };
  }

  protected enter(): void {
    this.#client.requireOpen();
  }

  /** Answers change no state of the server. */
  async #answer({ path, Stream }: Method, request: AnyRequest, options: CallOptions): Promise<object> {
    refuseFunctions(request);
    const call: RemoteCall = {
      method: 'POST',
      path: path!,
      body: toJson(request),
      headers: headersOf(options),
      signal: options.signal,
      isRepeatable: true,
      isStream: Stream !== undefined && request.stream === true,
    };
    if (!call.isStream) return await this.#client.json(call);
    const open = await this.#client.open(call);
    const type = open.response.header('content-type') ?? '';
    const stop = (why: string) => open.stop(new OnpolicyError('ABORTED', why));
    if (type.startsWith('text/event-stream'))
      return new Stream!(fromEventStream(open), () => stop('the stream was aborted'));
    stop('not a stream');
    open.end();
    throw new OnpolicyError('NETWORK_FAILED', `expected a stream, the server sent ${type || 'nothing'}`);
  }

  async #train(path: string, request: { model_id: string }, options: CallOptions): Promise<TrainingJob> {
    const { id } = await send<{ id: string }>(this.#client, 'POST', path, request, options);
    return new RemoteJob(id, request.model_id, this, this.#pollMs);
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

  async sft(request: SftRequest, options: CallOptions = {}): Promise<TrainingJob> {
    this.enter();
    checkCallOptions(options);
    checkSftRequest(request);
    return await this.#train('/v1/preview/sft-training-jobs', request, options);
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
    await readAll(await this.#client.open(call));
  }

  async close(): Promise<void> {
    this.#client.close();
  }
}

function headersOf({ traceId, background }: CallOptions): Readonly<Record<string, string>> {
  return {
    ...(traceId === undefined ? {} : { 'x-request-id': traceId }),
    ...(background ? { [BACKGROUND_HEADER]: 'true' } : {}),
  };
}

/** JSON with all digits of a seed of type bigint. */
function toJson(request: AnyRequest): string {
  const { messages } = request;
  const whole = messages ? { ...request, messages: replaceBytes(messages, toDataUri) } : request;
  if (typeof request.seed !== 'bigint') return JSON.stringify(whole);
  const { seed, ...rest } = whole;
  return `${JSON.stringify(rest).slice(0, -1)},"seed":${seed}}`;
}

function refuseFunctions({ logits_processors: processors }: AnyRequest): void {
  const index = processors?.findIndex((processor) => typeof processor === 'function') ?? -1;
  if (index < 0) return;
  const text = 'a function cannot be sent to a server; name a registered one';
  throw errorAt(`logits_processors.${index}`, 'UNSUPPORTED', text);
}
