/**
 * Steps of a model -> the model names for rollouts, at this service or at a sampler that loads each step's adapter. Counts uses of each
 * step.
 */
import { OnpolicyError } from '../../errors.ts';
import type { Completions } from '../../protocol/service/index.ts';
import type { TrainLoopOptions } from './loop-options.ts';

/** Options about the service that samples rollouts. */
type PolicyOptions = Pick<
  TrainLoopOptions<never>,
  'service' | 'model' | 'sampler' | 'samplerModel' | 'samplerPath'
>;

/** One rollout's model. It stays available until `end` is called. */
export type PolicyUse = { readonly step: number; readonly model: string; readonly end: () => Promise<void> };

/** The newest step, and older ones that rollouts still use. */
export class Policy {
  readonly #options: PolicyOptions;
  readonly #uses = new Map<number, number>(); // number of uses by step
  readonly #published = new Set<number>(); // steps loaded by the sampler
  #step = 0;

  constructor(options: PolicyOptions) {
    this.#options = options;
  }

  /** Service that answers rollouts' requests. */
  get service(): Completions {
    return this.#options.sampler ?? this.#options.service;
  }

  /** Makes a step the one that new rollouts start with. */
  async publish(step: number, signal: AbortSignal | undefined): Promise<void> {
    const { service, model, sampler, samplerPath } = this.#options;
    if (sampler && step > 0 && !this.#published.has(step)) {
      const folder = await service.checkpoints.folder?.(model, step);
      if (folder === undefined)
        throw new OnpolicyError('UNSUPPORTED', 'sampler: the service provides no checkpoint folders');
      const name = this.#nameOf(step);
      await sampler.unloadAdapter(name).catch(() => {}); // a leftover of a killed loop
      await sampler.loadAdapter({ name, path: samplerPath?.(folder) ?? folder }, signal ? { signal } : {});
      this.#published.add(step);
    }
    this.#step = step;
    await this.#retire();
  }

  /** Returns the newest step, for one rollout. */
  begin(): PolicyUse {
    const step = this.#step;
    this.#uses.set(step, (this.#uses.get(step) ?? 0) + 1);
    const end = async (): Promise<void> => {
      this.#uses.set(step, this.#uses.get(step)! - 1);
      await this.#retire();
    };
    return { step, model: this.#nameOf(step), end };
  }

  /** Returns true if rollouts use a step or will use it. */
  isUsed(step: number): boolean {
    return step === this.#step || (this.#uses.get(step) ?? 0) > 0;
  }

  /** Unloads adapters that no rollout uses or will use. */
  async #retire(): Promise<void> {
    for (const step of [...this.#published]) {
      if (this.isUsed(step)) continue;
      this.#published.delete(step);
      await this.#options.sampler?.unloadAdapter(this.#nameOf(step)).catch(() => {}); // a failure only costs memory there
    }
  }

  #nameOf(step: number): string {
    const { model, sampler, samplerModel } = this.#options;
    if (!sampler) return `${model}@${step}`;
    return step === 0 ? samplerModel! : `${model}-step-${step}`;
  }
}
