/** A training run of a service -> a method per step, sent in the order of the calls. */
import { randomUUID } from 'node:crypto';
import { neverSent } from '../../common/index.ts';
import { failIfAborted, OnpolicyError } from '../../errors.ts';
import {
  type AdamParams,
  type CallOptions,
  checkRequest,
  type Datum,
  RUN_OPERATIONS,
  type RunDataRequest,
  type RunOperation,
  type RunPublishRequest,
  type RunRequest,
  type RunSampleRequest,
  type TrainingRunInfo,
  type TrainingRunReply,
  type TrainingRunRequest,
  type TrainingRunResult,
} from '../index.ts';

/** Training runs whose steps a client sends one by one. {@link TrainingRun} calls them. */
export interface TrainingRunsResource {
  /** Opens a run on a registered model, or on a new one. @throws OnpolicyError `UNSUPPORTED` if it cannot be trained */
  create(request: TrainingRunRequest, options?: CallOptions): Promise<TrainingRunInfo>;
  /** Every run, oldest first, with the steps of its last saved state. */
  list(options?: CallOptions): Promise<readonly TrainingRunInfo[]>;
  /** @throws OnpolicyError `NOT_FOUND` */
  retrieve(id: string, options?: CallOptions): Promise<TrainingRunInfo>;
  /**
   * Runs a step. Steps run in the order of their numbers. A step that is repeated with its `idempotency_key` returns the first answer. A
   * run that is not open continues from its last saved state.
   * @throws OnpolicyError `CONFLICT` for a step out of order
   */
  call(
    id: string,
    operation: RunOperation,
    request: RunRequest,
    options?: CallOptions,
  ): Promise<TrainingRunReply>;
  /** Asks again for the result of a step. @throws OnpolicyError `NOT_FOUND` if it is not kept */
  result(
    requestId: string,
    query?: { readonly wait_ms?: number | null },
    options?: CallOptions,
  ): Promise<TrainingRunReply>;
  /** Saves unsaved changes as the state `last`, and frees the memory of a run. It can be continued later. */
  close(id: string, options?: CallOptions): Promise<TrainingRunInfo>;
  /** Deletes a run with its saved states. Published checkpoints stay. */
  delete(id: string, options?: CallOptions): Promise<TrainingRunInfo>;
}

/** A loss by name, with its settings. */
export type RunLoss = Pick<RunDataRequest, 'loss_fn' | 'loss_fn_config' | 'weighted_only'>;

/** Callback of {@link TrainingRun.forwardBackwardCustom}: log-probabilities of each datum -> the loss's gradient with respect to them. */
export type CustomGradient = (
  logprobs: readonly (readonly number[])[],
) => readonly ArrayLike<number>[] | Promise<readonly ArrayLike<number>[]>;

/** The client of one run. Steps run in the order of the calls, also those that were not awaited. */
export class TrainingRun implements AsyncDisposable {
  readonly #runs: TrainingRunsResource;
  readonly #info: TrainingRunInfo;
  #sequence: number;
  /** Number of calls that have a sequence number and no answer yet. */
  #underWay = 0;
  /** True if a step has failed since the run last reported its sequence number. */
  #isUnsure = false;
  #asking: Promise<void> | null = null;

  /** @internal Use `openTraining` of a service. */
  constructor(runs: TrainingRunsResource, info: TrainingRunInfo) {
    this.#runs = runs;
    this.#info = info;
    this.#sequence = info.sequence;
  }

  /** A UUID, with which the run can be continued after a restart. */
  get id(): string {
    return this.#info.id;
  }

  /** The registered model that it trains, which answers with the weights of the last `saveWeightsForSampler`. */
  get modelId(): string {
    return this.#info.model_id;
  }

  /** Number of steps sent, including those before a restart. They need not be sent again. */
  get sequence(): number {
    return this.#sequence;
  }

  /** Log-probabilities of all targets, and the loss. */
  forward(data: readonly Datum[], loss: RunLoss = {}, options?: CallOptions): Promise<TrainingRunResult> {
    return this.#call('forward', { data, ...loss }, options);
  }

  /**
   * Like {@link forward}, for the targets that the loss counts unless `weighted_only` is false. Also adds the gradient to those of the next
   * optimizer step.
   */
  forwardBackward(
    data: readonly Datum[],
    loss: RunLoss = {},
    options?: CallOptions,
  ): Promise<TrainingRunResult> {
    return this.#call('forward_backward', { data, ...loss }, options);
  }

  /** Adds the gradient of a custom loss, which `gradientOf` computes from the log-probabilities of all targets. */
  async forwardBackwardCustom(
    data: readonly Datum[],
    gradientOf: CustomGradient,
    options?: CallOptions,
  ): Promise<TrainingRunResult> {
    const { loss_fn_outputs } = await this.forward(data, {}, options);
    const gradients = await gradientOf(loss_fn_outputs!.map(({ logprobs }) => logprobs.data));
    const weighted = data.map(({ model_input, loss_fn_inputs: { target_tokens } }, i) => ({
      model_input,
      loss_fn_inputs: { target_tokens, weights: Array.from(gradients[i] ?? [], (value) => -value) },
    }));
    return await this.forwardBackward(weighted, {}, options);
  }

  /** Runs one step of AdamW on the gradients that were added since the last one. */
  optimStep(adam_params: AdamParams = {}, options?: CallOptions): Promise<TrainingRunResult> {
    return this.#call('optim_step', { adam_params }, options);
  }

  /**
   * Saves weights and optimizer. Gradients that no optimizer step has used are not saved. `overwrite: false`: a state of this name is an
   * error.
   */
  async saveState(
    name: string,
    { overwrite = true, ...options }: CallOptions & { readonly overwrite?: boolean } = {},
  ): Promise<void> {
    await this.#call('save_state', { name, overwrite }, options);
  }

  /** Restores a saved state, of this run or of another one. `optimizer: false` starts a new optimizer. */
  async loadState(
    name: string,
    { optimizer = true, run = null }: { readonly optimizer?: boolean; readonly run?: string | null } = {},
    options?: CallOptions,
  ): Promise<void> {
    await this.#call('load_state', { name, optimizer, run }, options);
  }

  /**
   * Makes the weights the newest checkpoint of the model. Resolves with the name by which requests use it. `decisions`: what was fitted for
   * its decisions.
   */
  async saveWeightsForSampler({
    decisions = null,
    ...options
  }: CallOptions & Pick<RunPublishRequest, 'decisions'> = {}): Promise<string> {
    return (await this.#call('save_weights_for_sampler', { decisions }, options)).path!;
  }

  /** Samples with the newest checkpoint of the model. */
  sample(
    request: Omit<RunSampleRequest, 'sequence' | 'idempotency_key' | 'wait_ms'>,
    options?: CallOptions,
  ): Promise<TrainingRunResult> {
    return this.#call('sample', request, options);
  }

  /** Saves unsaved changes as the state `last`, and frees the memory of the run. */
  async close(): Promise<void> {
    await this.#runs.close(this.id);
  }

  /** The same as {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #call(
    operation: RunOperation,
    request: RunRequest,
    options: CallOptions = {},
  ): Promise<TrainingRunResult> {
    checkRequest(RUN_OPERATIONS[operation], request, {}); // before the step gets a number
    failIfAborted(options.signal);
    while (this.#isUnsure && this.#underWay === 0) await this.#askSequence(options);
    this.#sequence++;
    const given = { ...request, sequence: this.#sequence, idempotency_key: randomUUID() };
    let reply = await this.#send(operation, given, options);
    while (reply.status === 'pending') {
      failIfAborted(options.signal);
      reply = await this.#runs.result(reply.request_id, {}, options);
    }
    return reply.result;
  }

  /** Sends a step. After a failure it asks the run for its number, once no step is in flight, because others may still be accepted. */
  async #send(operation: RunOperation, request: RunRequest, options: CallOptions): Promise<TrainingRunReply> {
    this.#underWay++;
    try {
      return await this.#runs.call(this.id, operation, request, options);
    } catch (error) {
      this.#isUnsure ||= !mayCome(error);
      throw error;
    } finally {
      this.#underWay--;
      if (this.#isUnsure && this.#underWay === 0) await this.#askSequence({}).catch(() => {}); // if this fails, the next step asks
    }
  }

  /** Asks for the number of the last accepted step. Concurrent callers share one request. */
  #askSequence(options: CallOptions): Promise<void> {
    this.#asking ??= this.#runs
      .retrieve(this.id, options)
      .then(({ sequence }) => {
        this.#sequence = sequence;
        this.#isUnsure = false;
      })
      .finally(() => {
        this.#asking = null;
      });
    return this.#asking;
  }
}

/** Returns true if a failed step may still reach the run. */
function mayCome(error: unknown): boolean {
  return error instanceof OnpolicyError && ON_ITS_WAY.includes(error.code) && !neverSent(error);
}

const ON_ITS_WAY: readonly string[] = ['NETWORK_FAILED', 'ABORTED', 'TIMEOUT'];
