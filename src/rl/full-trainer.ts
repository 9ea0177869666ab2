/** A small GGUF model and packed rows -> the same model with trained weights: cross-entropy over every weight, on the CPU. */
import fs from 'node:fs/promises';
import { replaceFile } from '../common/index.ts';
import { checkTensorTypes, readHeader } from '../engine/gguf/index.ts';
import { defaultThreads, loadAddon, onDisk, openLibraries } from '../engine/native/index.ts';
import { fromNative } from '../errors.ts';
import {
  checkArguments,
  type FullTrainerOptions,
  type PackedRow,
  type StepOptions,
} from '../protocol/index.ts';
import { FULL_ADAMW } from './optimizer.ts';
import { serialTrainer } from './serial-trainer.ts';

/** One trained tensor: `out` rows of `in` numbers. A norm or a bias has one row. */
export type FullParameter = {
  /** Name in the file, for example `blk.0.attn_q.weight`. */
  readonly name: string;
  readonly in: number;
  readonly out: number;
};

/** Trains all weights of a small model. Calls run one after the other, in the order they were made. */
export interface FullTrainer extends AsyncDisposable {
  readonly parameters: readonly FullParameter[];
  readonly vocabularySize: number;
  readonly contextSize: number;
  /** Returns the log-probability of each target of the row. */
  forward(row: PackedRow): Promise<Float32Array>;
  /**
   * Does the same, and accumulates the gradient of the row's loss: the sum over targets of -weight x log-probability. `targetWeights`:
   * (targets).
   */
  addGradients(row: PackedRow, targetWeights: Float32Array): Promise<Float32Array>;
  /** Returns a copy of one tensor's numbers, (out, in). */
  weight(name: string): Float32Array;
  /** Returns a copy of the gradient accumulated since the last step, (out, in). */
  gradient(name: string): Float32Array;
  /** Replaces tensors; omitted ones keep their numbers. */
  setWeights(weights: Readonly<Record<string, Float32Array>>): Promise<void>;
  /** Sets the accumulated gradients to zero. */
  zeroGradients(): Promise<void>;
  /** Takes one AdamW step on the accumulated gradients. A non-finite gradient changes nothing: `isApplied` is false then. */
  step(options: StepOptions): Promise<{ gradNorm: number; isApplied: boolean }>;
  /** Writes the model, in the types of its original file. A reader sees either the old file or the new one. */
  save(file: string): Promise<void>;
  /** Ends a running call with `ABORTED` as soon as its row is done. Later calls run normally. */
  abort(): void;
  /** Ends running calls and frees all resources. Can be called twice. */
  close(): Promise<void>;
}

/** Opens a small GGUF model to train all its weights. Supports the architectures of adapter training, without experts. */
export async function openFullTrainer(options: FullTrainerOptions): Promise<FullTrainer> {
  checkArguments('FullTrainerOptions', options);
  checkTensorTypes(await readHeader(options.model)); // the trainer reads sizes itself
  await openLibraries(false);
  const native = await loadAddon().openFullTrainer({
    model: onDisk(options.model),
    threads: options.threads ?? defaultThreads(),
    contextSize: options.contextSize ?? 0,
    isNarrow: options.arithmetic === 'fast',
  });
  const { run, takeGradients, calls } = serialTrainer(native, FULL_ADAMW);
  const read = (column: 'value' | 'gradient', name: string): Float32Array => {
    checkArguments('TensorName', name);
    try {
      return native.read(column, name);
    } catch (error) {
      throw fromNative(error);
    }
  };
  return {
    ...calls,
    parameters: native.parameters,
    vocabularySize: native.vocabularySize,
    contextSize: native.contextSize,
    forward: (row) =>
      run(() => {
        checkArguments('PackedRow', row);
        return native.score(row);
      }),
    addGradients: (row, targetWeights) =>
      run(() => {
        checkArguments('PackedRow', row);
        checkArguments('TargetWeights', targetWeights);
        if (!takeGradients(targetWeights)) return native.score(row);
        return native.addGradients(row, targetWeights);
      }),
    weight: (name) => read('value', name),
    gradient: (name) => read('gradient', name),
    setWeights: (weights) =>
      run(() => {
        checkArguments('TensorWeights', weights);
        native.write(weights);
      }),
    save: (file) =>
      run(async () => {
        checkArguments('TrainerFile', file);
        const bytes = await fs.readFile(options.model); // header, vocabulary and template stay as they are
        for (const { name, type, in: size, offset } of native.parameters)
          bytes.set(loadAddon().quantizeRows(type, native.read('value', name), size), offset);
        await replaceFile(file, bytes);
      }),
  };
}
