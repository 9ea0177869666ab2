/** A GGUF model and packed rows -> log-probabilities, gradients, new adapter weights. The native trainer behind one interface. */
import { setImmediate } from 'node:timers/promises';
import { makeFolder, writing } from '../common/index.ts';
import { OnpolicyError } from '../errors.ts';
import { checkTensorTypes, readHeader } from '../gguf/index.ts';
import { LINEAR_MODULES, plainAlpha } from '../lora/index.ts';
import type {
  AdapterWeights,
  LoraFactors,
  ModelFacts,
  NativeColumn,
  NativeTrainer,
  NativeTrainerOptions,
} from '../native/index.ts';
import { defaultThreads, devices, loadAddon, onDisk, openLibraries } from '../native/index.ts';
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

/** Everything that training changes. */
export type TrainerState = { readonly [Column in NativeColumn]: AdapterWeights } & {
  /** Optimizer steps taken. */
  readonly stepCount: number;
};

/** Trains an adapter on frozen weights. Calls run one after the other, in the order they were made. */
export interface Trainer extends AsyncDisposable {
  readonly info: TrainerInfo;
  /** Replaces the adapter: by module name, or from a GGUF or PEFT file or a checkpoint folder. Omitted modules keep their weights. */
  loadAdapter(source: AdapterWeights | string): Promise<void>;
  /** A copy of the adapter's weights. */
  adapter(): AdapterWeights;
  /** Fails with `OUT_OF_MEMORY` if training on the row would take more than `memoryBudget`. */
  checkMemory(row: PackedRow): Promise<void>;
  /** Log-probability and entropy of each target of the row. */
  forward(
    row: PackedRow,
    options?: ForwardOptions,
  ): Promise<{ logprobs: Float32Array; entropies: Float32Array }>;
  /** Accumulates the adapter's gradient, given d(loss)/d(log-probability) of each target of the last row. */
  backward(gradLogprobs: Float32Array): Promise<void>;
  /** A copy of the gradients accumulated since the last step. */
  gradients(): AdapterWeights;
  /** Sets the accumulated gradients to zero. */
  zeroGradients(): Promise<void>;
  /** Resets to a new adapter, which changes nothing yet, and clears the optimizer state. `seed`: default that of the options. */
  reset(seed?: number): Promise<void>;
  /** A copy of everything that training changes. */
  state(): Promise<TrainerState>;
  /** Goes back to such a copy, or to a part of it. */
  restore(state: Partial<TrainerState>): Promise<void>;
  /** One AdamW step on the accumulated gradients. A non-finite gradient changes nothing: `isApplied` is false then. */
  step(options: StepOptions): Promise<{ gradNorm: number; isApplied: boolean }>;
  /** Writes the adapter (GGUF and PEFT) and the optimizer state to a folder. */
  save(folder: string): Promise<void>;
  /** Reads a folder written by `save`. */
  load(folder: string): Promise<void>;
  /** Memory in addition to the weights, and how many layers keep their activations. */
  memory(): { readonly bytes: number; readonly keptLayers: number };
  /** Ends a running call with `ABORTED` as soon as its current layer is done. Later calls run normally. */
  abort(): void;
  /** Ends running calls and frees all resources. Can be called twice. */
  close(): Promise<void>;
}

/** Opens a GGUF model for training with a new adapter: A random, B zero, so it changes nothing yet. */
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
 * Bytes that training on a row of so many tokens takes beside the weights, by the file's header: without activations that are kept. They
 * are measured on the CPU, so that no GPU is opened. The engine's libraries are open.
 */
export async function trainingBytes(
  model: string,
  tokens: number,
  modules?: readonly string[],
): Promise<number> {
  const settings = withDefaults('TrainerOptions', { model, gpu: false, ...(modules ? { modules } : {}) });
  return await loadAddon().trainingBytes(nativeOptions(settings), tokens);
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

  /** All modules' numbers, copied without holding up the caller's thread for long. Only from within a call. */
  async function readInPieces(column: NativeColumn): Promise<AdapterWeights> {
    const weights: Record<string, LoraFactors> = {};
    for (const { name } of info.modules) {
      Object.assign(weights, native.read(column, name));
      await setImmediate();
    }
    return weights;
  }

  /** The same the other way round. */
  async function writeInPieces(column: NativeColumn, weights: AdapterWeights): Promise<void> {
    for (const [name, factors] of Object.entries(weights)) {
      native.write(column, { [name]: factors });
      await setImmediate();
    }
  }

  async function put({ stepCount, ...columns }: Partial<TrainerState>): Promise<void> {
    for (const [column, weights] of Object.entries(columns))
      await writeInPieces(column as NativeColumn, weights);
    if (stepCount !== undefined) native.stepCount(stepCount);
  }

  return {
    ...calls,
    info,
    async loadAdapter(source) {
      checkArguments('AdapterSource', source);
      const weights = typeof source === 'string' ? await readAdapter(source, info) : source;
      const known = new Set(info.modules.map(({ name }) => name));
      const unknown = Object.keys(weights).find((name) => !known.has(name));
      if (unknown !== undefined)
        throw new OnpolicyError('INVALID_REQUEST', `${unknown} is not a trained module of this model`);
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
      const value = await readAdapter(folder, info);
      const optimizer = await readOptimizer(folder);
      await run(async () => {
        await put({ value, ...optimizer });
        clearGradients();
      });
    },
    memory: () => native.memory(),
  };
}

/**
 * A uniform within 1 / sqrt(in), B zero: the usual start of LoRA. Made one module at a time, as there can be millions of
 * numbers. Each module continues the seed's stream.
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
