/** The folder of a model -> its checkpoints: listed, verified by checksum, discarded. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { ifMissing } from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';
import type { Checkpoint } from '../../protocol/index.ts';
import { checkFiles, FACTS_FILE, factsIn, listSteps, stepFolder } from '../index.ts';
import { FolderContents } from './folder-contents.ts';
import type { Home } from './home.ts';

/** Reads checkpoint folders. */
export class Checkpoints {
  readonly #home: Home;
  readonly #checked = new Set<string>();
  readonly #steps = new Map<string, FolderContents<readonly number[]>>(); // by model

  constructor(home: Home) {
    this.#home = home;
  }

  folder(modelId: string): string {
    return this.#home.path('models', modelId, 'checkpoints');
  }

  /** The steps with a checkpoint, in order. Requests ask for them, so an unchanged folder is not read. */
  async steps(modelId: string): Promise<readonly number[]> {
    const known = this.#steps.get(modelId) ?? new FolderContents(this.folder(modelId), listSteps);
    this.#steps.set(modelId, known);
    const steps = await known.get();
    if (steps === null) this.#steps.delete(modelId);
    return steps ?? [];
  }

  /** A checkpoint; null if it is missing or its file is damaged. Damage is reported. */
  async read(modelId: string, step: number): Promise<Checkpoint | null> {
    const folder = stepFolder(this.folder(modelId), step);
    let problem: unknown = new Error('it is missing');
    const facts = await factsIn(folder, (_, cause) => {
      problem = cause;
      return null;
    });
    if (typeof facts?.id === 'string' && facts.step === step)
      return { id: facts.id, step, metrics: facts.metrics };
    if (facts) problem = new Error('it is of another checkpoint');
    // A folder without the file is damaged; a missing folder was deleted meanwhile.
    if (await fs.stat(folder).catch(ifMissing(null)))
      this.#home.report(path.join(folder, FACTS_FILE), problem);
    return null;
  }

  /** Verifies the files of a checkpoint by checksum, once. */
  async check(modelId: string, checkpoint: Checkpoint): Promise<void> {
    if (this.#checked.has(checkpoint.id)) return;
    const damage = await checkFiles(stepFolder(this.folder(modelId), checkpoint.step));
    if (damage !== null)
      throw new OnpolicyError(
        'STORE_FAILED',
        `${damage}; delete step ${checkpoint.step} to go back to the checkpoint before it`,
      );
    this.#checked.add(checkpoint.id);
  }

  /** Moves a checkpoint to the trash and returns its folder there, to be removed; null if there is none. */
  async discard(modelId: string, step: number): Promise<string | null> {
    const folder = stepFolder(this.folder(modelId), step);
    return await this.#home.discard(folder, `checkpoint-${step}`).catch(ifMissing(null));
  }
}
