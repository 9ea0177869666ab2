/** Model files -> opened trainers: one per file, open for a while after its last job for the next one. */
import { openTrainer, type Trainer, type TrainerOptions } from '../rl/index.ts';

/** How trainers are opened. */
export type TrainerSettings = Pick<
  TrainerOptions,
  'rank' | 'alpha' | 'rslora' | 'modules' | 'memoryBudget' | 'gpu' | 'threads'
>;

/** A trainer is closed after this time without a job. */
const KEPT_FOR_MS = 300_000;

type Kept = { readonly trainer: Promise<Trainer>; isInUse: boolean; timer: NodeJS.Timeout | undefined };

/** The trainers of one runtime. Jobs on one file come one after the other. */
export class Trainers {
  readonly #kept = new Map<string, Kept>();

  /** Runs `work` with the trainer of a file. Trainers of other files that have nothing to do are closed first. */
  async use<Result>(
    file: string,
    settings: TrainerSettings,
    work: (trainer: Trainer) => Promise<Result>,
  ): Promise<Result> {
    for (const [other, { isInUse }] of this.#kept) if (other !== file && !isInUse) await this.#close(other);
    let kept = this.#kept.get(file);
    if (!kept) {
      kept = { trainer: openTrainer({ ...settings, model: file }), isInUse: false, timer: undefined };
      this.#kept.set(file, kept);
    }
    clearTimeout(kept.timer);
    kept.isInUse = true;
    try {
      return await work(await kept.trainer);
    } finally {
      kept.isInUse = false;
      const opened = await kept.trainer.catch(() => null);
      if (!opened)
        this.#kept.delete(file); // it may be tried again
      else kept.timer = setTimeout(() => void this.#close(file), KEPT_FOR_MS).unref();
    }
  }

  /** Frees all of them. Only when no job runs. */
  async close(): Promise<void> {
    await Promise.all([...this.#kept.keys()].map((file) => this.#close(file)));
  }

  async #close(file: string): Promise<void> {
    const kept = this.#kept.get(file);
    if (!kept) return;
    this.#kept.delete(file);
    clearTimeout(kept.timer);
    const trainer = await kept.trainer.catch(() => null); // it never opened
    await trainer?.close();
  }
}
