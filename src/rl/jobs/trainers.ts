/** Model files -> opened trainers: one per file, kept open for a while after its last use. */
import { errorAt } from '../../errors.ts';
import { type RunningModel, requireGguf } from '../../models/index.ts';
import { openTrainer, type Trainer, type TrainerOptions } from '../index.ts';

/** Options for opening trainers. */
export type TrainerSettings = Pick<
  TrainerOptions,
  'rank' | 'alpha' | 'rslora' | 'modules' | 'memoryBudget' | 'gpu' | 'threads' | 'contextSize'
>;

/** Returns the options that depend on the model that samples. */
export function settingsOf({
  threads,
  engine,
}: RunningModel): Pick<TrainerSettings, 'threads' | 'contextSize'> {
  return { threads, contextSize: engine.sequenceCells };
}

/** Fails with `UNSUPPORTED` for a model that cannot be trained. */
export function requireTrainableModel(base: RunningModel, field: string): void {
  if (requireGguf(base, field).rope)
    throw errorAt(field, 'UNSUPPORTED', 'a model with the option rope cannot be trained');
}

/** Owner of the state that a trainer holds between its uses. */
export interface ParkedState {
  /** Copies its state out of the trainer. */
  park(trainer: Trainer): Promise<void>;
  /** Puts its state into the trainer. */
  resume(trainer: Trainer): Promise<void>;
}

/** A trainer is closed after this many milliseconds without a use. */
const KEPT_FOR_MS = 300_000;

type Kept = {
  readonly trainer: Promise<Trainer>;
  readonly settings: string;
  resident: ParkedState | null;
  isInUse: boolean;
  closing: Promise<void> | null;
  timer: NodeJS.Timeout | undefined;
};

/** The trainers of one runtime. Uses of one file run one after the other. */
export class Trainers {
  readonly #kept = new Map<string, Kept>();

  /**
   * Runs `work` with the trainer of a file. Idle trainers of other files are closed first.
   * @param resident its state is in the trainer while `work` runs, and may stay there. Null if `work` sets the state itself
   */
  async use<Result>(
    file: string,
    settings: TrainerSettings,
    resident: ParkedState | null,
    work: (trainer: Trainer) => Promise<Result>,
  ): Promise<Result> {
    const wanted = JSON.stringify(settings);
    for (const [other, { isInUse }] of this.#kept) if (other !== file && !isInUse) await this.#close(other);
    let kept = this.#kept.get(file);
    if (kept?.closing || kept?.settings !== wanted) {
      await this.#close(file);
      const trainer = openTrainer({ ...settings, model: file });
      kept = { trainer, settings: wanted, resident: null, isInUse: false, closing: null, timer: undefined };
      this.#kept.set(file, kept);
    }
    clearTimeout(kept.timer);
    kept.isInUse = true;
    try {
      const trainer = await kept.trainer;
      if (kept.resident !== resident) {
        await kept.resident?.park(trainer);
        kept.resident = null;
        await resident?.resume(trainer);
        kept.resident = resident;
      }
      return await work(trainer);
    } finally {
      const opened = await kept.trainer.catch(() => null);
      kept.isInUse = false;
      if (!opened)
        this.#kept.delete(file); // it may be tried again
      else kept.timer = setTimeout(() => void this.#close(file), KEPT_FOR_MS).unref();
    }
  }

  /** Drops the state of a resident that no longer needs it. */
  release(resident: ParkedState): void {
    for (const kept of this.#kept.values()) if (kept.resident === resident) kept.resident = null;
  }

  /** Frees all trainers. Call it only when no job runs. */
  async close(): Promise<void> {
    await Promise.all([...this.#kept.keys()].map((file) => this.#close(file)));
  }

  /** Closes the trainer of a file. A state that cannot be copied out is lost, and its resident reports this when it needs it. */
  async #close(file: string): Promise<void> {
    const kept = this.#kept.get(file);
    if (!kept) return;
    clearTimeout(kept.timer);
    kept.closing ??= this.#end(kept).finally(() => this.#kept.delete(file));
    await kept.closing;
  }

  async #end({ trainer: opening, resident }: Kept): Promise<void> {
    const trainer = await opening.catch(() => null); // it never opened
    if (trainer) await resident?.park(trainer).catch(() => {});
    await trainer?.close().catch(() => {});
  }
}
