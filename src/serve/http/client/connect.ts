/** A server's URL -> its service, with the same contract as in process. */

import type {
  ConnectOptions,
  SftRequest,
  TrainingRunInfo,
  TranscriptionRequest,
} from '../../../protocol/index.ts';
import {
  type CallArguments,
  type CallOptions,
  type ConnectedService,
  METHODS,
  type Method,
  type MethodName,
  RemoteJob,
  type Service,
  type TrainingJob,
  type TrainingRunsResource,
  type TranscriptionAnswer,
} from '../../../protocol/service/index.ts';
import { TrainingFacade } from '../../facade.ts';
import { callEndpoint, headersOf } from './call-endpoint.ts';
import { type ClientSettings, checkConnectOptions } from './connect-options.ts';
import { RetryingClient, readAll } from './retrying-client.ts';
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
class RemoteService extends TrainingFacade implements ConnectedService {
  readonly #client: RetryingClient;
  readonly #pollMs: number;
  readonly #withoutTranscripts = new Set<string | null>(); // models for which the server lacks the endpoint
  readonly models: Service['models'] = this.resource('models');
  readonly checkpoints: Service['checkpoints'] = this.resource('checkpoints');
  readonly trainingJobs: Service['trainingJobs'] = this.resource('trainingJobs');
  readonly trainingRuns: TrainingRunsResource = this.resource('trainingRuns');

  constructor(settings: ClientSettings) {
    super();
    this.#client = new RetryingClient(settings);
    this.#pollMs = settings.pollMs;
  }

  override has(name: MethodName): boolean {
    return (METHODS[name] as Method).http !== undefined;
  }

  protected async ask(name: MethodName, args: CallArguments): Promise<unknown> {
    const answer = await callEndpoint(this.#client, name, args);
    if (name === 'trainingRuns.list') return (answer as { data: readonly TrainingRunInfo[] }).data;
    if (name !== 'train' && name !== 'sft') return answer;
    const [{ model_id }] = args as [{ model_id: string }];
    return new RemoteJob((answer as { id: string }).id, model_id, this, this.#pollMs);
  }

  protected requireOpen(): void {
    this.#client.requireOpen();
  }

  /** @internal Calls the server's transcription endpoint. If the server has none for a model, it is not called for that model again. */
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

  sft(request: SftRequest, options?: CallOptions): Promise<TrainingJob> {
    return this.call('sft', [request, options]) as Promise<TrainingJob>;
  }

  async loadAdapter(
    { name, path }: { readonly name: string; readonly path: string },
    options?: CallOptions,
  ): Promise<void> {
    await this.#changeAdapters('loadAdapter', { lora_name: name, lora_path: path }, options);
  }

  async unloadAdapter(name: string, options?: CallOptions): Promise<void> {
    await this.#changeAdapters('unloadAdapter', { lora_name: name }, options);
  }

  /** Loads or unloads an adapter. The text that the server answers with is dropped. */
  async #changeAdapters(
    name: 'loadAdapter' | 'unloadAdapter',
    body: object,
    { signal }: CallOptions = {},
  ): Promise<void> {
    const [method, path] = METHODS[name].http;
    const call = { method, path, body: JSON.stringify(body), signal, isRepeatable: false };
    await readAll(await this.#client.open(call));
  }

  async close(): Promise<void> {
    this.#client.close();
  }
}
