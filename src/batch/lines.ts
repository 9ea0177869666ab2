/** Rows that are done, in any order -> the journal and the reader, several at once, in the order that was asked for. */
import type { BatchRow } from '../protocol/index.ts';
import type { Finished, Journal } from './journal.ts';

/** Rows that may wait for the disk or the reader. */
const MOST_WAITING = 1024;

/** Where lines go. */
export type LineTargets = {
  readonly journal: Journal | null;
  /** Resolves when the reader has taken them. */
  readonly deliver: ((rows: readonly BatchRow[]) => Promise<void>) | null;
  readonly inOrder: boolean;
  /** There is room for more. */
  readonly onWritten: () => void;
  readonly onFailure: (error: unknown) => void;
};

/** Lines on their way. What is finished while a write runs is written by the next one. */
export class Lines {
  readonly #targets: LineTargets;
  readonly #held = new Map<number, Finished | null>(); // by line, in the order of the input; null: not done
  #waiting: Finished[] = [];
  #writing: Promise<void> | null = null;

  constructor(targets: LineTargets) {
    this.#targets = targets;
  }

  /** A row was read: its line comes in this order. */
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

  /** Whether further rows must wait for the disk. */
  get isFull(): boolean {
    return this.#waiting.length >= MOST_WAITING;
  }

  /** Resolves when everything is written that can be. */
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
      this.#waiting = []; // `#writing` stays: nothing more is written
      onFailure(error);
    }
  }
}
