/** Requests of Tinker's API -> models that are trained step by step, and samples of them. Results are read later, by the id of a request. */
import { randomInt, randomUUID } from 'node:crypto';
import { OnpolicyError } from '../../../errors.ts';
import type {
  RunDataRequest,
  RunOperation,
  RunRequest,
  TextCompletion,
  TinkerLoadBody,
  TinkerModelBody,
  TinkerPublishBody,
  TinkerSampleBody,
  TinkerSaveBody,
  TinkerStepBody,
  TrainingRunResult,
} from '../../../protocol/index.ts';
import type { CallOptions, TrainingRunsResource } from '../../../protocol/service/index.ts';
import { type FutureResult, type FutureState, Futures } from './futures.ts';
import { OrderedSteps } from './ordered-steps.ts';
import {
  readSamplerId,
  readSamplerPath,
  readStatePath,
  runOf,
  type Sampler,
  samplerId,
  samplerPath,
  statePath,
} from './paths.ts';
import type { DataStep } from './read-data.ts';
import { toDataAnswer, toSampleAnswer } from './to-answer.ts';

/** Scale of adapters, whose output is multiplied by it and divided by their rank. */
const ALPHA = 32;
/** Largest random seed and one. */
const SEEDS = 2 ** 31;

/** A client and the options of its calls. */
export type TinkerCaller = { readonly owner: string; readonly call: CallOptions };

/** Models in training and requests under way, of one service. */
export class Tinker {
  readonly #runs: TrainingRunsResource;
  readonly #futures = new Futures();
  readonly #steps = new Map<string, Promise<OrderedSteps>>();

  constructor(runs: TrainingRunsResource) {
    this.#runs = runs;
  }

  /** Begins to create a model. Returns the id of the request, like all methods that begin something. */
  createModel(
    { session_id, model_seq_id, base_model, lora_config }: TinkerModelBody,
    { owner, call }: TinkerCaller,
  ): string {
    const id = `${session_id}:train:${model_seq_id}`;
    this.#futures.begin(id, owner, async () => {
      const { rank, seed } = lora_config ?? {};
      const adapter = {
        alpha: ALPHA,
        seed: seed ?? randomInt(SEEDS),
        ...(rank === undefined ? {} : { rank }),
      };
      const run = await this.#runs.create({ model: base_model, ...adapter }, call);
      this.#steps.set(run.id, Promise.resolve(new OrderedSteps(this.#runs, run.id, run.sequence)));
      return { type: 'create_model', model_id: run.id };
    });
    return id;
  }

  /** Scores data, and adds the gradient of their loss. `most`: bytes that all requests under way and their results may have. */
  async learn(
    { model_id, seq_id, isForward, bytes }: DataStep,
    request: RunDataRequest,
    caller: TinkerCaller,
    most: number,
  ): Promise<string> {
    const operation = isForward ? 'forward' : 'forward_backward';
    return await this.#step(model_id, seq_id, operation, request, toDataAnswer, caller, { bytes, most });
  }

  async step({ model_id, seq_id, adam_params }: TinkerStepBody, caller: TinkerCaller): Promise<string> {
    return await this.#step(
      model_id,
      seq_id,
      'optim_step',
      { adam_params },
      ({ metrics }) => ({ type: 'optim_step', metrics }),
      caller,
    );
  }

  async save(
    { model_id, seq_id, path: name, overwrite }: TinkerSaveBody,
    caller: TinkerCaller,
  ): Promise<string> {
    return await this.#step(
      model_id,
      seq_id,
      'save_state',
      { name, overwrite: overwrite ?? false },
      () => ({ type: 'save_weights', path: statePath(model_id, name) }),
      caller,
    );
  }

  async load({ model_id, seq_id, path, optimizer }: TinkerLoadBody, caller: TinkerCaller): Promise<string> {
    const { run, name } = readStatePath(path, 'path');
    return await this.#step(
      model_id,
      seq_id,
      'load_state',
      { name, optimizer, run },
      () => ({ type: 'load_weights', path, model_id }),
      caller,
    );
  }

  /** Saves weights that answer requests: under a path, or only for a sampling session. */
  async publish(body: TinkerPublishBody, caller: TinkerCaller): Promise<string> {
    const { model_id, seq_id, path: name, sampling_session_seq_id } = body;
    const { base_model } = await this.#runs.retrieve(model_id, caller.call);
    const answer = ({ path }: TrainingRunResult): FutureResult => {
      const model_path = name == null ? null : samplerPath(model_id, name, path!);
      const sampler = { model: path!, base_model, model_path };
      const session =
        sampling_session_seq_id == null
          ? {}
          : { sampling_session_id: samplerId(model_id, sampling_session_seq_id, sampler) };
      return {
        type: 'save_weights_for_sampler',
        ...(model_path === null ? {} : { path: model_path }),
        ...session,
      };
    };
    return await this.#step(model_id, seq_id, 'save_weights_for_sampler', {}, answer, caller);
  }

  /** Passes over a step that was refused before it began. */
  async refuse(model_id: string, seq_id: number, { call }: TinkerCaller): Promise<void> {
    (await this.#stepsOf(model_id, call)).refuse(seq_id);
  }

  /** Frees the memory of a model. */
  unload(model_id: string, { owner, call }: TinkerCaller): string {
    const id = `${model_id}:unload`;
    this.#futures.begin(id, owner, async () => {
      await this.#runs.close(model_id, call);
      this.#steps.delete(model_id);
      return { type: 'unload_model', model_id };
    });
    return id;
  }

  /** Begins to sample. `ask`: answers the translated request, whose prompt this is. */
  sample(
    body: TinkerSampleBody,
    prompt: readonly number[],
    ask: () => Promise<TextCompletion>,
    { owner }: TinkerCaller,
  ): string {
    const { sampling_session_id: session, seq_id } = body;
    const id = session == null || seq_id == null ? `sample:${randomUUID()}` : `${session}:${seq_id}`;
    this.#futures.begin(id, owner, async () => toSampleAnswer(await ask(), prompt, body));
    return id;
  }

  /** Returns what answers requests that name one of these. */
  async samplerOf(
    {
      sampling_session_id: session,
      model_path,
      base_model,
    }: Pick<TinkerSampleBody, 'sampling_session_id' | 'model_path' | 'base_model'>,
    { call }: TinkerCaller,
  ): Promise<Sampler> {
    if (session != null) return readSamplerId(session, 'sampling_session_id');
    if (model_path != null) {
      const { run, step } = readSamplerPath(model_path, 'model_path');
      const found = await this.#runs.retrieve(run, call);
      return { model: `${found.model_id}@${step}`, base_model: found.base_model, model_path };
    }
    if (base_model != null) return { model: base_model, base_model, model_path: null };
    throw new OnpolicyError(
      'INVALID_REQUEST',
      'expected one of sampling_session_id, model_path and base_model',
    );
  }

  async info(model_id: string, { call }: TinkerCaller): Promise<object> {
    const { base_model, rank } = await this.#runs.retrieve(model_id, call);
    return {
      type: 'get_info',
      model_id,
      model_data: { model_name: base_model },
      model_name: base_model,
      is_lora: true,
      lora_rank: rank,
    };
  }

  async weightsInfo(path: string, { call }: TinkerCaller): Promise<object> {
    const { base_model, rank } = await this.#runs.retrieve(runOf(path), call);
    return { base_model, is_lora: true, lora_rank: rank };
  }

  /** Returns the state of a request, or `pending` after this time. Throws the reason of the signal when it fires. */
  async read(id: string, waitMs: number, { owner }: TinkerCaller, signal: AbortSignal): Promise<FutureState> {
    return await this.#futures.read(id, owner, waitMs, signal);
  }

  async #step(
    model_id: string,
    seq_id: number,
    operation: RunOperation,
    request: RunRequest,
    answer: (result: TrainingRunResult) => FutureResult,
    { owner, call }: TinkerCaller,
    room?: Parameters<Futures['begin']>[3],
  ): Promise<string> {
    const id = `${model_id}:${seq_id}`;
    const steps = await this.#stepsOf(model_id, call);
    const work = async () => answer(await steps.call(seq_id, operation, request, call));
    this.#futures.begin(id, owner, work, room);
    return id;
  }

  /** Returns the steps of a model, also of an earlier process. Throws `NOT_FOUND`. */
  async #stepsOf(model_id: string, call: CallOptions): Promise<OrderedSteps> {
    let steps = this.#steps.get(model_id);
    if (!steps) {
      steps = this.#runs
        .retrieve(model_id, call)
        .then(({ sequence }) => new OrderedSteps(this.#runs, model_id, sequence));
      this.#steps.set(model_id, steps);
      steps.catch(() => this.#steps.delete(model_id));
    }
    return await steps;
  }
}

const known = new WeakMap<object, Tinker>();

/** Returns the models in training of a service, which all its callers share. `runs`: its training runs. */
export function tinkerOf(service: object, runs: TrainingRunsResource): Tinker {
  let tinker = known.get(service);
  if (!tinker) {
    tinker = new Tinker(runs);
    known.set(service, tinker);
  }
  return tinker;
}
