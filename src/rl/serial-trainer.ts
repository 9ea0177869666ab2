/** A native trainer -> its calls, made one after the other; what trainers of adapters and of all weights have in common. */
import { Queue } from '../common/index.ts';
import { fromNative, OnpolicyError } from '../errors.ts';
import type { NativeStep } from '../native/index.ts';
import type { StepOptions } from '../protocol/index.ts';
import { type AdamW, stepOptions } from './optimizer.ts';

type Native = {
  step(options: NativeStep): Promise<{ gradNorm: number; isApplied: boolean }>;
  zeroGradients(): void;
  clearAbort(): void;
  abort(): void;
  close(): void;
};

/** Calls run in their order; after closing, none. */
export function serialTrainer(native: Native, defaults: AdamW) {
  const queue = new Queue();
  let isClosed = false;
  let areFinite = true; // what was added since the last step: NaN never reaches the engine, whose builds for Windows end the process on it

  /** Runs `work` after all earlier calls, whether they failed or not. */
  const run = <T>(work: () => T | Promise<T>): Promise<T> =>
    queue.run('calls', async () => {
      if (isClosed) throw new OnpolicyError('CLOSED', 'the trainer is closed');
      try {
        native.clearAbort();
        return await work();
      } catch (error) {
        throw fromNative(error);
      }
    });

  /** Whether these gradients may be used; if not, the next step changes nothing. */
  const takeGradients = (numbers: Float32Array): boolean => {
    const areUsable = numbers.every(Number.isFinite);
    if (!areUsable) areFinite = false;
    return areUsable;
  };

  /** Gradients are gathered anew. Only from within a call. */
  const clearGradients = (): void => {
    areFinite = true;
    native.zeroGradients();
  };

  const close = async (): Promise<void> => {
    native.abort();
    await queue.idle();
    if (isClosed) return;
    isClosed = true;
    native.close();
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
