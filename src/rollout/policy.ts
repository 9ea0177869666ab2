/** Steps of a model -> the names that rollouts ask for, here or at a sampler that gets each step's adapter. Counts who uses which. */
import { OnpolicyError } from '../errors.ts';
import type { Completions } from '../service.ts';
import type { TrainLoopOptions } from './loop-options.ts';

/** Where rollouts are sampled. */
type PolicyOptions = Pick<
  TrainLoopOptions<never>,
  'service' | 'model' | 'sampler' | 'samplerModel' | 'samplerPath'
>;

/** One rollout's model; it stays until `end`. */
export type PolicyUse = { readonly step: number; readonly model: string; readonly end: () => Promise<void> };

/** The newest step, and older ones that rollouts still use. */
export class Policy {
  readonly #options: PolicyOptions;
  readonly #uses = new Map<number, number>(); // by step
  readonly #published = new Set<number>(); // at the sampler
  #step = 0;

  constructor(options: PolicyOptions) {
    this.#options = options;
  }

  /** What answers. */
  get service(): Completions {
    return this.#options.sampler ?? this.#options.service;
  }

  /** Makes a step the one that further rollouts begin with. */
  async publish(step: number, signal: AbortSignal | undefined): Promise<void> {
    const { service, model, sampler, samplerPath } = this.#options;
    if (sampler && step > 0 && !this.#published.has(step)) {
      const folder = await service.checkpoints.folder?.(model, step);
      if (folder === undefined)
        throw new OnpolicyError('UNSUPPORTED', 'sampler: the service provides no checkpoint folders');
      const name = this.#nameOf(step);
      await sampler.unloadAdapter(name).catch(() => {}); // one that a killed loop left
      await sampler.loadAdapter({ name, path: samplerPath?.(folder) ?? folder }, signal ? { signal } : {});
      this.#published.add(step);
    }
    this.#step = step;
    await this.#retire();
  }

  /** The newest step, for one rollout. */
  begin(): PolicyUse {
    const step = this.#step;
    this.#uses.set(step, (this.#uses.get(step) ?? 0) + 1);
    const end = async (): Promise<void> => {
      this.#uses.set(step, this.#uses.get(step)! - 1);
      await this.#retire();
    };
    return { step, model: this.#nameOf(step), end };
  }

  /** Whether rollouts use a step, or will. */
  isUsed(step: number): boolean {
    return step === this.#step || (this.#uses.get(step) ?? 0) > 0;
  }

  /** Takes back adapters that no rollout uses or will use. */
  async #retire(): Promise<void> {
    for (const step of [...this.#published]) {
      if (this.isUsed(step)) continue;
      this.#published.delete(step);
      await this.#options.sampler?.unloadAdapter(this.#nameOf(step)).catch(() => {}); // it only takes memory there
    }
  }

  #nameOf(step: number): string {
    const { model, sampler, samplerModel } = this.#options;
    if (!sampler) return `${model}@${step}`;
    return step === 0 ? samplerModel! : `${model}-step-${step}`;
  }
}
