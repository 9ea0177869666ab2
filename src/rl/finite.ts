/** Gradients of a loss -> whether a step may use them. NaN never reaches the engine, whose builds for Windows end the process on it. */
import type { NativeStep } from '../native/index.ts';

type Stepper = {
  step(options: NativeStep): Promise<{ gradNorm: number; isApplied: boolean }>;
  zeroGradients(): void;
};

/** Remembers, from one step to the next, whether all gradients were finite. */
export class FiniteGradients {
  #areFinite = true;

  /** Whether these numbers may be used. */
  take(numbers: Float32Array): boolean {
    const areFinite = numbers.every((value) => Number.isFinite(value));
    if (!areFinite) this.#areFinite = false;
    return areFinite;
  }

  /** Steps, or changes nothing but the gathered gradients. */
  async step(native: Stepper, options: NativeStep): Promise<{ gradNorm: number; isApplied: boolean }> {
    if (this.#areFinite) return await native.step(options);
    this.clear(native);
    return { gradNorm: Number.NaN, isApplied: false };
  }

  /** Gradients are gathered anew. */
  clear(native: Stepper): void {
    this.#areFinite = true;
    native.zeroGradients();
  }
}
