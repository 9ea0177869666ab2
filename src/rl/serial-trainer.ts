/** A native trainer -> serialized calls, with the code that trainers of adapters and of all weights share. */
import { Queue } from '../common/index.ts';
import type { NativeStep } from '../engine/native/index.ts';
import { fromNative, OnpolicyError } from '../errors.ts';
import type { StepOptions } from '../protocol/index.ts';
import { type AdamW, stepOptions } from './optimizer.ts';

type Native = {
  step(options: NativeStep): Promise<{ gradNorm: number; isApplied: boolean }>;
  zeroGradients(): void;
  clearAbort(): void;
  abort(): void;
  close(): void;
};

/** Runs calls in their order. After closing, calls are rejected. */
export function serialTrainer(native: Native, defaults: AdamW) {
  const queue = new Queue();
  let closing: Promise<void> | null = null;
  /** False after a non-finite number was added since the last step: NaN must not reach the engine, whose Windows builds abort on it. */
  let areFinite = true;

  /** Runs `work` after all earlier calls, even if they failed. */
  const run = <T>(work: () => T | Promise<T>): Promise<T> =>
    queue.run('calls', async () => {
      if (closing) throw new OnpolicyError('CLOSED', 'the trainer is closed');
      try {
        native.clearAbort();
        return await work();
      } catch (error) {
        throw fromNative(error);
      }
    });

  /** Returns true if these gradients may be used. If not, the next step changes nothing. */
  const takeGradients = (numbers: Float32Array): boolean => {
    const areUsable = numbers.every(Number.isFinite);
    if (!areUsable) areFinite = false;
    return areUsable;
  };

  /** Starts a new accumulation of gradients. Call it only from within a queued call. */
  const clearGradients = (): void => {
    areFinite = true;
    native.zeroGradients();
  };

  const end = async (): Promise<void> => {
    native.abort();
    await queue.idle();
    native.close();
  };
  const close = (): Promise<void> => {
    closing ??= end();
    return closing;
  };

  const calls = {
    zeroGradients: () => run(clearGradients),
    step: (options: StepOptions) =>
      run(async () => {
        const checked = stepOptions(options, defaults);
        if (areFinite) return await native.step(checked);
        clearGradients();
        return { gradNorm: Number.NaN, isApplied: false };
      }),
    abort: () => native.abort(),
    close,
    [Symbol.asyncDispose]: close,
  };
  return { run, takeGradients, clearGradients, calls };
}
