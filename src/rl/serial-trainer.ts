/** A native trainer -> its calls, made one after the other; what trainers of adapters and of all weights have in common. */
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
export abstract class SerialTrainer<N extends Native> implements AsyncDisposable {
  protected readonly native: N;
  readonly #defaults: AdamW;
  #last: Promise<unknown> = Promise.resolve();
  #isClosed = false;
  /** Of what was added since the last step: NaN never reaches the engine, whose builds for Windows end the process on it. */
  #areFinite = true;

  constructor(native: N, defaults: AdamW) {
    this.native = native;
    this.#defaults = defaults;
  }

  /** Runs `work` after all earlier calls, whether they failed or not. */
  protected run<T>(work: () => T | Promise<T>): Promise<T> {
    const run = this.#last.then(async () => {
      if (this.#isClosed) throw new OnpolicyError('CLOSED', 'the trainer is closed');
      try {
        this.native.clearAbort();
        return await work();
      } catch (error) {
        throw fromNative(error);
      }
    });
    this.#last = run.catch(() => {});
    return run;
  }

  /** Whether these gradients may be used; if not, the next step changes nothing. */
  protected takeGradients(numbers: Float32Array): boolean {
    const areFinite = numbers.every((value) => Number.isFinite(value));
    if (!areFinite) this.#areFinite = false;
    return areFinite;
  }

  /** Gradients are gathered anew. Only from within a call. */
  protected clearGradients(): void {
    this.#areFinite = true;
    this.native.zeroGradients();
  }

  zeroGradients(): Promise<void> {
    return this.run(() => this.clearGradients());
  }

  step(options: StepOptions): Promise<{ gradNorm: number; isApplied: boolean }> {
    return this.run(async () => {
      const checked = stepOptions(options, this.#defaults);
      if (this.#areFinite) return await this.native.step(checked);
      this.clearGradients();
      return { gradNorm: Number.NaN, isApplied: false };
    });
  }

  abort(): void {
    this.native.abort();
  }

  async close(): Promise<void> {
    this.native.abort();
    await this.#last;
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.native.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
