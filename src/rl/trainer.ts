/** A GGUF model and packed rows -> log-probabilities, gradients, new adapter weights. The native trainer behind one interface. */
import { setImmediate } from 'node:timers/promises';
import { makeFolder, writing } from '../common/index.ts';
import { checkTensorTypes, readHeader } from '../engine/gguf/index.ts';
import type {
  AdapterWeights,
  LoraFactors,
  ModelFacts,
  NativeColumn,
  NativeTrainer,
  NativeTrainerOptions,
} from '../engine/native/index.ts';
import { defaultThreads, devices, loadAddon, onDisk, openLibraries } from '../engine/native/index.ts';
import { OnpolicyError } from '../errors.ts';
import { LINEAR_MODULES, plainAlpha } from '../models/lora/index.ts';
import {
  checkArguments,
  type ForwardOptions,
  type PackedRow,
  type StepOptions,
  type TrainerOptions,
  withDefaults,
} from '../protocol/index.ts';
import { readAdapter, readOptimizer, saveCheckpoint } from './checkpoint-files.ts';
import { ADAPTER_ADAMW } from './optimizer.ts';
import { serialTrainer } from './serial-trainer.ts';

/** Properties of an opened trainer. */
export type TrainerInfo = ModelFacts & {
  readonly rank: number;
  readonly alpha: number;
  readonly rslora: boolean;
};

/** All data that training changes. */
export type TrainerState = { readonly [Column in NativeColumn]: AdapterWeights } & {
  /** Optimizer steps taken. */
  readonly stepCount: number;
};

/** Trains an adapter on frozen weights. Calls run one after the other, in the order they were made. */
export interface Trainer extends AsyncDisposable {
  readonly info: TrainerInfo;
  /**
   * Replaces the adapter. A GGUF or PEFT file or a checkpoint folder is loaded completely: modules that it lacks are reset to their initial
   * values, which have no effect. Weights by module name leave omitted modules unchanged. The trainer must have all modules of the source.
   */
  loadAdapter(source: AdapterWeights | string): Promise<void>;
  /** Returns a copy of the adapter's weights. */
  adapter(): AdapterWeights;
  /** Fails with `OUT_OF_MEMORY` if training on the row would take more than `memoryBudget`. */
  checkMemory(row: PackedRow): Promise<void>;
  /** Returns the log-probability and entropy of each target of the row. */
  forward(
    row: PackedRow,
    options?: ForwardOptions,
  ): Promise<{ logprobs: Float32Array; entropies: Float32Array }>;
  /** Accumulates the adapter's gradient, given d(loss)/d(log-probability) of each target of the last row. */
  backward(gradLogprobs: Float32Array): Promise<void>;
  /** Returns a copy of the gradients accumulated since the last step. */
  gradients(): AdapterWeights;
  /** Sets the accumulated gradients to zero. */
  zeroGradients(): Promise<void>;
  /** Resets to a new adapter, which has no effect yet, and clears the optimizer state. `seed`: default that of the options. */
  reset(seed?: number): Promise<void>;
  /** Returns a copy of all data that training changes. */
  state(): Promise<TrainerState>;
  /** Restores such a copy, or a part of it. */
  restore(state: Partial<TrainerState>): Promise<void>;
  /** Takes one AdamW step on the accumulated gradients. A non-finite gradient changes nothing: `isApplied` is false then. */
  step(options: StepOptions): Promise<{ gradNorm: number; isApplied: boolean }>;
  /** Writes the adapter (GGUF and PEFT) and the optimizer state to a folder. */
  save(folder: string): Promise<void>;
  /**
   * Reads a folder written by `save`. Throws and changes nothing if the trainer lacks one of its modules or has another rank or scale.
   * Modules that the folder lacks are reset to their initial values, which have no effect.
   */
  load(folder: string): Promise<void>;
  /** Returns the memory in addition to the weights, and how many layers keep their activations. */
  memory(): { readonly bytes: number; readonly keptLayers: number };
  /** Ends a running call with `ABORTED` as soon as its current layer is done. Later calls run normally. */
  abort(): void;
  /** Ends running calls and frees all resources. Can be called twice. */
  close(): Promise<void>;
}

/** Opens a GGUF model for training with a new adapter: A is random and B zero, so it has no effect yet. */
export async function openTrainer(options: TrainerOptions): Promise<Trainer> {
  const settings = withDefaults('TrainerOptions', checkArguments('TrainerOptions', options));
  const { model, rank, alpha, rslora } = settings;
  checkTensorTypes(await readHeader(model)); // the trainer reads sizes itself
  await openLibraries(settings.gpu ?? 'auto');
  const native = await loadAddon().openTrainer(nativeOptions(settings));
  const trainer = adapterTrainer(native, { ...native.info, rank, alpha, rslora }, settings.seed);
  await trainer.reset();
  return trainer;
}

/**
 * Estimates the bytes that training on a row of this many tokens takes in addition to the weights, from the file's header and without kept
 * activations. They are measured on the CPU, so that no GPU is opened. The engine's libraries must be open.
 */
export async function trainingBytes(
  model: string,
  tokens: number,
  modules?: readonly string[],
): Promise<number> {
  const settings = withDefaults('TrainerOptions', { model, gpu: false, ...(modules ? { modules } : {}) });
  return await loadAddon().trainingBytes(nativeOptions(settings), tokens);
}

/** Returns the full names of the linear layers that `modules` selects, by the header of a model file. */
export async function trainedModules(
  model: string,
  modules?: readonly string[] | null,
): Promise<readonly string[]> {
  await openLibraries('auto');
  const settings = withDefaults('TrainerOptions', { model, gpu: false, ...(modules ? { modules } : {}) });
  return await loadAddon().trainedModules(nativeOptions(settings));
}

function nativeOptions(settings: ReturnType<typeof withDefaults<'TrainerOptions'>>): NativeTrainerOptions {
  const gpu = settings.gpu === false ? undefined : devices().find((device) => device.kind === 'gpu');
  return {
    model: onDisk(settings.model),
    device: gpu?.name ?? '',
    threads: settings.threads ?? defaultThreads(),
    rank: settings.rank,
    alpha: plainAlpha(settings),
    modules: settings.modules ?? LINEAR_MODULES,
    contextSize: settings.contextSize ?? 0,
    memoryBudget: settings.memoryBudget ?? 0,
    isWide: settings.arithmetic === 'exact',
  };
}

function adapterTrainer(native: NativeTrainer, info: TrainerInfo, usualSeed: number): Trainer {
  const { run, takeGradients, clearGradients, calls } = serialTrainer(native, ADAPTER_ADAMW);

  /** Copies all modules' numbers in pieces, so that the caller's thread is not blocked for long. Call it only from within a queued call. */
  async function readInPieces(column: NativeColumn): Promise<AdapterWeights> {
    const weights: Record<string, LoraFactors> = {};
    for (const { name } of info.modules) {
      Object.assign(weights, native.read(column, name));
      await setImmediate();
    }
    return weights;
  }

  /** Writes all modules' numbers in pieces. */
  async function writeInPieces(column: NativeColumn, weights: AdapterWeights): Promise<void> {
    for (const [name, factors] of Object.entries(weights)) {
      native.write(column, { [name]: factors });
      await setImmediate();
    }
  }

  async function put({ stepCount, ...columns }: Partial<TrainerState>): Promise<void> {
    for (const weights of Object.values(columns)) requireFitting(weights, info, 'state');
    for (const [column, weights] of Object.entries(columns))
      await writeInPieces(column as NativeColumn, weights);
    if (stepCount !== undefined) native.stepCount(stepCount);
  }

  return {
    ...calls,
    info,
    async loadAdapter(source) {
      checkArguments('AdapterSource', source);
      const given = typeof source === 'string' ? await readAdapter(source, info) : source;
      requireFitting(given, info, typeof source === 'string' ? source : 'source');
      const weights = typeof source === 'string' ? await complete(given, info, usualSeed) : given;
      await run(() => writeInPieces('value', weights));
    },
    adapter: () => native.read('value'),
    checkMemory: (row) =>
      run(() => {
        checkArguments('PackedRow', row);
        return native.checkMemory(row);
      }),
    forward: (row, options = {}) =>
      run(() => {
        checkArguments('PackedRow', row);
        const { gradients, adapterOff } = withDefaults(
          'ForwardOptions',
          checkArguments('ForwardOptions', options),
        );
        return native.forward(row, gradients, adapterOff);
      }),
    backward: (gradLogprobs) =>
      run(async () => {
        checkArguments('LogprobGradient', gradLogprobs);
        if (takeGradients(gradLogprobs)) await native.backward(gradLogprobs);
      }),
    gradients: () => native.read('gradient'),
    async reset(seed = usualSeed) {
      const weights = await freshAdapter(info, seed);
      await run(async () => {
        await writeInPieces('value', weights);
        native.resetOptimizer();
        clearGradients();
      });
    },
    state: () =>
      run(async () => ({
        value: await readInPieces('value'),
        gradient: await readInPieces('gradient'),
        firstMoment: await readInPieces('firstMoment'),
        secondMoment: await readInPieces('secondMoment'),
        stepCount: native.stepCount(),
      })),
    restore: (state) => run(() => put(state)),
    save: (folder) =>
      run(async () => {
        checkArguments('TrainerFolder', folder);
        const optimizer = {
          stepCount: native.stepCount(),
          firstMoment: await readInPieces('firstMoment'),
          secondMoment: await readInPieces('secondMoment'),
        };
        await writing(folder, () => makeFolder(folder));
        await saveCheckpoint(folder, info, await readInPieces('value'), optimizer);
      }),
    async load(folder) {
      checkArguments('TrainerFolder', folder);
      const given = await readAdapter(folder, info);
      const optimizer = await readOptimizer(folder);
      for (const weights of [given, optimizer.firstMoment, optimizer.secondMoment])
        requireFitting(weights, info, folder);
      const value = await complete(given, info, usualSeed);
      await run(async () => {
        native.resetOptimizer(); // also moments of modules that the folder lacks
        await put({ value, ...optimizer });
        clearGradients();
      });
    },
    memory: () => native.memory(),
  };
}

/** Throws if the trainer lacks a module of an adapter, or has it in another size. */
function requireFitting(weights: AdapterWeights, { modules, rank }: TrainerInfo, source: string): void {
  const known = new Map(modules.map((module) => [module.name, module]));
  const unknown = Object.keys(weights).filter((name) => !known.has(name));
  if (unknown.length > 0)
    throw new OnpolicyError(
      'INVALID_REQUEST',
      `${source}: the trainer was opened without ${unknown.length} of its ${Object.keys(weights).length} modules, for example ${unknown[0]}`,
    );
  for (const [name, { a, b }] of Object.entries(weights)) {
    const { in: width, out, experts } = known.get(name)!;
    for (const [factor, { length }, expected] of [
      ['a', a, experts * rank * width],
      ['b', b, experts * rank * out],
    ] as const)
      if (length !== expected)
        throw new OnpolicyError(
          'INVALID_REQUEST',
          `${source}: ${name}.${factor}: expected ${expected} numbers, by the rank ${rank} of the trainer, got ${length}`,
        );
  }
}

/** Returns the adapter with all modules of the trainer. Missing ones get their initial values. */
async function complete(weights: AdapterWeights, info: TrainerInfo, seed: number): Promise<AdapterWeights> {
  const isWhole = info.modules.every(({ name }) => Object.hasOwn(weights, name));
  return isWhole ? weights : { ...(await freshAdapter(info, seed)), ...weights };
}

/**
 * Creates a new adapter with the usual initialization of LoRA: A uniform within 1 / sqrt(in), B zero. Modules are created one at a time, as
 * there can be millions of numbers. Each module continues the seed's stream.
 */
async function freshAdapter({ modules, rank }: TrainerInfo, seed: number): Promise<AdapterWeights> {
  const { uniforms } = loadAddon();
  const weights: Record<string, LoraFactors> = {};
  let position = 0;
  for (const module of modules) {
    const bound = 1 / Math.sqrt(module.in);
    const { experts } = module;
    const numbers = uniforms(BigInt(seed), position, experts * rank * module.in);
    position += numbers.length;
    const a = Float32Array.from(numbers, (number) => (2 * number - 1) * bound);
    const b = new Float32Array(experts * module.out * rank);
    weights[module.name] = { a, b, ...(experts > 1 ? { experts } : {}) };
    await setImmediate();
  }
  return weights;
}
