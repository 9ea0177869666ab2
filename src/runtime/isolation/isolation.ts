/** Options of a runtime -> the processes of its isolated models, and a call -> the process that answers it. */
import path from 'node:path';
import { onAbort, RemoteStream } from '../../common/index.ts';
import { errorAt, failIfAborted, messageOf, OnpolicyError } from '../../errors.ts';
import { type NamedModels, namedModels } from '../../models/index.ts';
import { type ModelOptions, readingInput } from '../../protocol/index.ts';
import {
  type CallArguments,
  type CallOptions,
  ChatCompletionStream,
  METHODS,
  type Method,
  type MethodName,
  type NamedAdapter,
  type PrefixCacheReset,
  RemoteJob,
  type Service,
} from '../../protocol/service/index.ts';
import { type OpenStore, openStore } from '../../rl/store/index.ts';
import type { CheckedOptions } from '../options.ts';
import { EngineProcess } from './engine-process.ts';

/** Milliseconds between two polls of a training job while a caller waits for it. */
const POLL_MS = 100;

/** The runtime whose models are isolated. */
type Host = Service & { readonly adapters: { list(): readonly NamedAdapter[] } };

/**
 * The processes of one runtime. With `isolate` of the runtime, one process answers, trains and writes to the home folder. With `isolate` of
 * a model, a process answers the requests for this model; the runtime's process does all else.
 */
export class Isolation {
  readonly #whole: EngineProcess | null;
  readonly #bySettings: ReadonlyMap<string, EngineProcess>;
  readonly #byAdapter = new Map<string, EngineProcess>();
  readonly #adapters = new Map<string, NamedAdapter>();
  readonly #names: NamedModels;
  readonly #store: OpenStore | null; // has the base models of registered models

  /** Returns null if no model is isolated. */
  static open(options: CheckedOptions): Isolation | null {
    const isolation = new Isolation(options);
    if (isolation.#processes.length === 0) return null;
    if (isSingleExecutable())
      throw new OnpolicyError(
        'UNSUPPORTED',
        'isolate: a single executable has no Node to start a process with',
      );
    return isolation;
  }

  private constructor(options: CheckedOptions) {
    this.#names = namedModels(options.model, options.models);
    this.#whole = options.isolate ? openProcess(options) : null;
    const bySettings = new Map<string, EngineProcess>();
    for (const model of this.#whole ? [] : [this.#names.fallback, ...this.#names.aliases.values()])
      if (model.isolate && !bySettings.has(keyOf(model))) bySettings.set(keyOf(model), openProcess(options));
    this.#bySettings = bySettings;
    this.#store = bySettings.size > 0 ? openStore(options.home) : null;
  }

  /** Answers a call in the process that its method and model belong to. `here`: answers it in this process. */
  async ask(name: MethodName, args: CallArguments, here: () => unknown, host: Host): Promise<unknown> {
    if (name === 'resetPrefixCache') return await this.#resetCaches(args, here);
    const { Stream }: Method = METHODS[name];
    const place = await this.#find(name, args);
    if (!place) return await here();
    if (name === 'unload' && !place.isRunning) return false;
    const given = args[0] as NamedAdapter; // the argument of `adapters.load`
    if (name === 'adapters.load') this.#requireFree(given.name, place, host.adapters.list());
    const answer = await send(place, name, args);
    if (answer instanceof RemoteStream) {
      const stream = new Stream!(answer.parts as AsyncIterator<never>, answer.stop);
      if (!(stream instanceof ChatCompletionStream)) return stream;
      return stream.endReasoningElsewhere(
        (id) => place.call('endReasoning', [id], 'a stream') as Promise<boolean>,
      );
    }
    if (name === 'train' || name === 'sft') return jobOf(answer, args, place, host);
    if (name === 'adapters.load') {
      this.#adapters.set(given.name, answer as NamedAdapter);
      this.#note(given.name, place, [{ ...given, loadInPlace: true }]);
    }
    if (name === 'adapters.unload' && this.#adapters.delete(args[0] as string))
      this.#note(args[0] as string, place, null);
    return answer;
  }

  /** Returns the adapters that are loaded in the processes. */
  adapters(): readonly NamedAdapter[] {
    return [...this.#adapters.values()];
  }

  /** Returns the latest reported state of each process. */
  states(): NonNullable<EngineProcess['state']>[] {
    return this.#processes.flatMap(({ state }) => state ?? []);
  }

  /** Closes the processes and waits for their exit. */
  async close(): Promise<void> {
    await Promise.all(this.#processes.map((place) => place.close()));
    await this.#store?.close();
  }

  get #processes(): readonly EngineProcess[] {
    return this.#whole ? [this.#whole] : [...this.#bySettings.values()];
  }

  /** Returns the process that answers a call, or null if this process does. */
  async #find(name: MethodName, args: CallArguments): Promise<EngineProcess | null> {
    const { model, atHome }: Method = METHODS[name];
    if (!model) return atHome ? this.#whole : null;
    if (this.#whole) return this.#whole;
    const given = readingInput(args[0], () => model(args));
    if (typeof given !== 'string' || given === '') return this.#of(null);
    const adapter = this.#byAdapter.get(given);
    if (adapter) return adapter;
    const registered = await this.#store!.store.findModel(given.replace(/@\d+$/, ''));
    return this.#of(registered?.base_model ?? given);
  }

  /** Empties the prefix caches of all processes that run. */
  async #resetCaches(args: CallArguments, here: () => unknown): Promise<PrefixCacheReset> {
    const places = this.#processes.filter(({ isRunning }) => isRunning);
    const resets = [
      ...(this.#whole ? [] : [here()]),
      ...places.map((place) => send(place, 'resetPrefixCache', args)),
    ];
    const answers = (await Promise.all(resets)) as PrefixCacheReset[];
    return { success: answers.every(({ success }) => success) };
  }

  #of(name: string | null): EngineProcess | null {
    return this.#bySettings.get(keyOf(this.#names.find(name))) ?? null;
  }

  /** Throws `CONFLICT` if an adapter's name is taken in another process. Each process checks the names of its own adapters. */
  #requireFree(name: string, place: EngineProcess, taken: readonly NamedAdapter[]): void {
    if (this.#byAdapter.get(name) === place || !taken.some((one) => one.name === name)) return;
    throw errorAt('name', 'CONFLICT', `the adapter ${JSON.stringify(name)} is loaded beside another model`);
  }

  /** Records an adapter of a process, which loads it again after a restart. `args` null removes the record. */
  #note(adapter: string, place: EngineProcess, args: CallArguments | null): void {
    if (args) this.#byAdapter.set(adapter, place);
    else this.#byAdapter.delete(adapter);
    if (args) place.replayed.set(adapter, { method: 'adapters.load', args });
    else place.replayed.delete(adapter);
  }
}

/** Returns the job of an answer. It keeps this process alive until the job ends. */
function jobOf(answer: unknown, args: CallArguments, place: EngineProcess, host: Host): RemoteJob {
  const { id, modelId } = answer as { id: string; modelId: string };
  const job = new RemoteJob(id, modelId, host, POLL_MS);
  const { signal } = args[1] as CallOptions;
  const cancel = (): void => void job.cancel().catch(() => {}); // fails if the job has ended
  const cancelling = onAbort(signal, cancel);
  void place
    .call('jobEnd', [id], 'a training job')
    .catch(() => {})
    .finally(() => cancelling[Symbol.dispose]());
  return job;
}

function keyOf(model: ModelOptions): string {
  return JSON.stringify(model);
}

/** Creates the process of a runtime with these options. */
function openProcess(options: CheckedOptions): EngineProcess {
  const { log, tracker, onProgress, onStoreProblem, model, models, home, ...plain } = options;
  const sent = {
    ...plain,
    isolate: false,
    home: path.resolve(home),
    model: model && inside(model),
    models: Object.fromEntries(Object.entries(models).map(([name, one]) => [name, inside(one)])),
  };
  const onProblem = onStoreProblem ?? (log && ((problem: string) => log('warn', problem)));
  return new EngineProcess(sent, { log, tracker, onProgress, onStoreProblem: onProblem });
}

/** Removes `isolate` from the options of a model, because the child process must not isolate it again. */
function inside(model: string | ModelOptions): string | ModelOptions {
  if (typeof model === 'string') return model;
  const { isolate: _, ...options } = model;
  return options;
}

/** Calls a method in the child process. Its signal is watched in this process. */
async function send(place: EngineProcess, name: MethodName, args: CallArguments): Promise<unknown> {
  const { args: names, model }: Method = METHODS[name];
  const { signal, ...rest } = args[names.length] as CallOptions;
  failIfAborted(signal);
  const used = readingInput(args, () => {
    refuseProcessors(args[0]);
    return model?.(args) || null;
  });
  const what = !model ? name : used === null ? 'the default model' : `the model ${String(used)}`;
  try {
    return await place.call(name, [...args.slice(0, -1), rest], what, signal);
  } catch (error) {
    if (error instanceof OnpolicyError) throw error;
    throw readingInput(args, () => unsent(args, error));
  }
}

/** Throws if a request has logits processors: they are functions, and named ones are registered in this process only. */
function refuseProcessors(request: unknown): void {
  const { logits_processors: given } = (request ?? {}) as { logits_processors?: unknown };
  if (!Array.isArray(given) || given.length === 0) return;
  const text = 'a logits processor is a function of this process, and the model is isolated in another one';
  throw errorAt('logits_processors.0', 'UNSUPPORTED', text);
}

/** Returns the error for arguments that cannot be cloned. */
function unsent(args: readonly unknown[], cause: unknown): OnpolicyError {
  const found = args.map((arg) => pathOfFunction(arg, [])).find((loc) => loc !== null) ?? [];
  const msg = `${found.join('.') || 'request'}: expected data that can be sent to another process: ${messageOf(cause)}`;
  return new OnpolicyError('INVALID_REQUEST', msg, { detail: [{ loc: found, msg, type: 'type' }] });
}

function pathOfFunction(value: unknown, loc: readonly string[]): readonly string[] | null {
  if (typeof value === 'function' || typeof value === 'symbol') return loc;
  if (typeof value !== 'object' || value === null || loc.length > 20) return null;
  for (const [key, inner] of Object.entries(value)) {
    const found = pathOfFunction(inner, [...loc, key]);
    if (found) return found;
  }
  return null;
}

/** Returns true if this program is part of Node's binary. Such a binary cannot start another program. */
function isSingleExecutable(): boolean {
  const { isSea } = (process.getBuiltinModule?.('node:sea') ?? {}) as { isSea?: () => boolean };
  return isSea?.() ?? false;
}
