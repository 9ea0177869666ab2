/** Finished rows, in any order -> the journal and the reader, several at once, in the order that was asked for. */
import type { BatchRow } from '../../protocol/index.ts';
import type { Finished, Journal } from './journal.ts';

/** Number of finished rows that may wait for the disk or the reader. */
const MOST_WAITING = 1024;

/** Receivers of finished lines: the journal, the reader, and callbacks. */
export type LineTargets = {
  readonly journal: Journal | null;
  /** Resolves when the reader has taken the rows. */
  readonly deliver: ((rows: readonly BatchRow[]) => Promise<void>) | null;
  readonly inOrder: boolean;
  /** Called when there is room for more rows. */
  readonly onWritten: () => void;
  readonly onFailure: (error: unknown) => void;
};

/** Lines that wait to be written. Lines finished during a write go into the next one. */
export class Lines {
  readonly #targets: LineTargets;
  readonly #held = new Map<number, Finished | null>(); // by line, in the order of the input; null until the row is finished
  #waiting: Finished[] = [];
  #writing: Promise<void> | null = null;

  constructor(targets: LineTargets) {
    this.#targets = targets;
  }

  /** Registers a row that was read. With `inOrder`, lines are written in the order of these calls. */
  expect(line: number): void {
    if (this.#targets.inOrder) this.#held.set(line, null);
  }

  add(finished: Finished): void {
    if (!this.#targets.inOrder) this.#waiting.push(finished);
    else {
      this.#held.set(finished.place.line, finished);
      for (const [line, next] of this.#held) {
        if (!next) break;
        this.#held.delete(line);
        this.#waiting.push(next);
      }
    }
    this.#writing ??= this.#write();
  }

  /** True if so many rows wait for the disk that no further ones should be started. */
  get isFull(): boolean {
    return this.#waiting.length >= MOST_WAITING;
  }

  /** Resolves when every line that can be written is written. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  async #write(): Promise<void> {
    const { journal, deliver, onWritten, onFailure } = this.#targets;
    try {
      await null; // rows that end in the same tick are written together
      while (this.#waiting.length > 0) {
        const rows = this.#waiting;
        this.#waiting = [];
        await journal?.write(rows);
        await deliver?.(rows.map(({ row }) => row));
        onWritten();
      }
      this.#writing = null;
    } catch (error) {
      this.#waiting = []; // `#writing` stays set, so that no more lines are written
      onFailure(error);
    }
  }
}
