/** A runtime and its options -> the same runtime, whose isolated models are asked in processes of their own. */
import path from 'node:path';
import type { CheckedService } from '../checked-service.ts';
import { RemoteStream } from '../common/index.ts';
import { errorAt, failIfAborted, messageOf, OnpolicyError } from '../errors.ts';
import { type MediaStats, sumMediaStats } from '../media/index.ts';
import {
  type AdaptersResource,
  type NamedAdapter,
  type NamedModels,
  namedModels,
  type ResidentModel,
} from '../models/index.ts';
import { checkCallOptions, type ModelOptions, readingInput } from '../protocol/index.ts';
import { RemoteJob } from '../remote-job.ts';
import type { CheckedOptions } from '../runtime-options.ts';
import { type RuntimeStats, sumRuntimeStats } from '../runtime-stats.ts';
import {
  type CallOptions,
  type Method,
  type MethodName,
  METHODS as SERVICE_METHODS,
  type Service,
} from '../service.ts';
import { type OpenStore, openStore } from '../store/index.ts';
import { EngineProcess } from './engine-process.ts';
import { findMethod, type IsolatedMethod, METHODS } from './methods.ts';

/** What of a runtime changes beside `METHODS`. */
type Isolated = CheckedService &
  Service & {
    readonly adapters: AdaptersResource;
    stats(): RuntimeStats;
    mediaStats(): MediaStats;
    loaded(): ResidentModel[];
  };

/** Milliseconds between two looks at a training job, while somebody waits for it. */
const POLL_MS = 100;

/**
 * Makes the methods of a runtime calls of processes, as its options say. `isolate` of the runtime: one process answers, trains and
 * writes to the home folder. Of a model: it has a process that answers its requests; all else is done here.
 */
export function isolate(runtime: Isolated, options: CheckedOptions): void {
  const places = new Places(options);
  if (places.all.length === 0) return;
  if (isSingleExecutable())
    throw new OnpolicyError(
      'UNSUPPORTED',
      'isolate: a single executable has no Node to start a process with',
    );
  const adapters = new Map<string, NamedAdapter>(); // that are loaded elsewhere
  for (const [name, method] of Object.entries(METHODS)) {
    const found = findMethod(runtime, name);
    const here = found.owner[found.name]!;
    found.owner[found.name] = async (...args: unknown[]): Promise<unknown> => {
      const place = await places.find(method, args);
      if (!place) return await here.apply(found.owner, args);
      if (name === 'unload' && !place.isRunning) return false;
      const given = args[0] as NamedAdapter; // of adapters
      if (name === 'adapters.load') places.requireFree(given.name, place, runtime.adapters.list());
      const answer = await ask(place, name, method, args);
      if (answer instanceof RemoteStream) {
        const { Stream }: Method = SERVICE_METHODS[name as MethodName];
        return new Stream!(answer.parts as AsyncIterator<never>, answer.stop);
      }
      if (name === 'train' || name === 'sft') {
        const { id, modelId } = answer as { id: string; modelId: string };
        const job = new RemoteJob(id, modelId, runtime, POLL_MS);
        const { signal } = (args[1] as CallOptions | undefined) ?? {};
        const cancel = (): void => void job.cancel().catch(() => {}); // it has ended
        signal?.addEventListener('abort', cancel);
        void place // until its end this process waits for it
          .call('jobEnd', [id], 'a training job')
          .catch(() => {})
          .finally(() => signal?.removeEventListener('abort', cancel));
        return job;
      }
      if (name === 'adapters.load') {
        adapters.set(given.name, answer as NamedAdapter);
        places.note(given.name, place, [{ ...given, loadInPlace: true }]);
      }
      if (name === 'adapters.unload' && adapters.delete(args[0] as string))
        places.note(args[0] as string, place, null);
      return answer;
    };
  }
  const [stats, mediaStats, loaded] = [runtime.stats, runtime.mediaStats, runtime.loaded];
  const [list, close] = [runtime.adapters.list, runtime.close];
  runtime.stats = () =>
    sumRuntimeStats([stats.call(runtime), ...places.states().map((state) => state.stats)]);
  runtime.mediaStats = () =>
    sumMediaStats([mediaStats.call(runtime), ...places.states().map((state) => state.mediaStats)]);
  runtime.loaded = () => [...loaded.call(runtime), ...places.states().flatMap((state) => state.loaded)];
  runtime.adapters.list = () => [...list(), ...adapters.values()];
  runtime.close = async () => {
    await Promise.all([close.call(runtime), ...places.all.map((place) => place.close())]);
    await places.closeStore();
  };
}

/** Which process a model is in. */
class Places {
  readonly all: readonly EngineProcess[];
  readonly #whole: EngineProcess | null;
  readonly #bySettings = new Map<string, EngineProcess>();
  readonly #byAdapter = new Map<string, EngineProcess>();
  readonly #names: NamedModels;
  readonly #store: OpenStore | null; // knows what registered models start from

  constructor(options: CheckedOptions) {
    this.#names = namedModels(options.model, options.models);
    this.#whole = options.isolate ? openProcess(options) : null;
    for (const model of this.#whole ? [] : [this.#names.fallback, ...this.#names.aliases.values()])
      if (model.isolate && !this.#bySettings.has(keyOf(model)))
        this.#bySettings.set(keyOf(model), openProcess(options));
    this.all = this.#whole ? [this.#whole] : [...this.#bySettings.values()];
    this.#store = this.#bySettings.size > 0 ? openStore(options.home) : null;
  }

  /** Null: here. */
  async find({ reference }: IsolatedMethod, args: readonly unknown[]): Promise<EngineProcess | null> {
    if (this.#whole || !reference) return this.#whole;
    const given = readingInput(args, () => reference(args));
    if (typeof given !== 'string' || given === '') return this.#of(null);
    const adapter = this.#byAdapter.get(given);
    if (adapter) return adapter;
    const registered = await this.#store!.store.findModel(given.replace(/@\d+$/, ''));
    return this.#of(registered?.base_model ?? given);
  }

  /** What the processes have said last. */
  states(): NonNullable<EngineProcess['state']>[] {
    return this.all.flatMap(({ state }) => state ?? []);
  }

  /** Each process knows the names of its own adapters. */
  requireFree(name: string, place: EngineProcess, taken: readonly NamedAdapter[]): void {
    if (this.#byAdapter.get(name) === place || !taken.some((one) => one.name === name)) return;
    throw errorAt('name', 'CONFLICT', `the adapter ${JSON.stringify(name)} is loaded beside another model`);
  }

  /** An adapter that the process has, and loads again when it starts again. Null: no longer. */
  note(adapter: string, place: EngineProcess, args: readonly unknown[] | null): void {
    if (args) this.#byAdapter.set(adapter, place);
    else this.#byAdapter.delete(adapter);
    if (args) place.replayed.set(adapter, { method: 'adapters.load', args });
    else place.replayed.delete(adapter);
  }

  async closeStore(): Promise<void> {
    await this.#store?.close();
  }

  #of(name: string | null): EngineProcess | null {
    return this.#bySettings.get(keyOf(this.#names.find(name))) ?? null;
  }
}

function keyOf(model: ModelOptions): string {
  return JSON.stringify(model);
}

/** A process for a runtime with these options. */
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

/** The same in the process of its own. */
function inside(model: string | ModelOptions): string | ModelOptions {
  if (typeof model === 'string') return model;
  const { isolate: _, ...options } = model;
  return options;
}

/** Calls a method in the process. Its signal stays here. */
async function ask(
  place: EngineProcess,
  name: string,
  { options: at, reference }: IsolatedMethod,
  args: readonly unknown[],
): Promise<unknown> {
  const options = at === undefined ? undefined : (args[at] as CallOptions | undefined);
  checkCallOptions(options);
  const { signal, ...rest } = options ?? {};
  failIfAborted(signal);
  const sent = [...args];
  if (at !== undefined) sent[at] = rest;
  const model = readingInput(args, () => {
    refuseProcessors(args[0]);
    return reference?.(args) || null;
  });
  const what = !reference ? name : model === null ? 'the default model' : `the model ${String(model)}`;
  try {
    return await place.call(name, sent, what, signal);
  } catch (error) {
    if (error instanceof OnpolicyError) throw error;
    throw readingInput(args, () => unsent(args, error));
  }
}

/** They are functions, and those that have a name were registered in this process. */
function refuseProcessors(request: unknown): void {
  const { logits_processors: given } = (request ?? {}) as { logits_processors?: unknown };
  if (!Array.isArray(given) || given.length === 0) return;
  const text = 'a logits processor is a function of this process, and the model is isolated in another one';
  throw errorAt('logits_processors.0', 'UNSUPPORTED', text);
}

/** The error of what cannot be cloned. */
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

/** Whether this program lies inside of Node's binary, which then starts nothing else. */
function isSingleExecutable(): boolean {
  const { isSea } = (process.getBuiltinModule?.('node:sea') ?? {}) as { isSea?: () => boolean };
  return isSea?.() ?? false;
}
