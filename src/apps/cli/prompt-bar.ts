/** Progress of a prompt -> a bar on a terminal, which is gone when the answer begins. */
import type { Writable } from 'node:stream';
import { barOf, drawnLine } from '../../common/index.ts';
import type { PromptProgress } from '../../index.ts';
import { isWatched } from './terminal.ts';

/** A prompt that takes less is not worth a bar. */
const WORTH_MS = 300;

export class PromptBar {
  readonly #output: Writable;
  readonly #isTerminal: boolean;
  #isShown = false;

  constructor(output: Writable) {
    this.#output = output;
    this.#isTerminal = isWatched(output);
  }

  /** Fields that a request needs to report its progress; none if there is no terminal. */
  get fields(): { return_progress?: true } {
    return this.#isTerminal ? { return_progress: true } : {};
  }

  /** Draws the bar over the last one. */
  show({ processed, total, time_ms }: PromptProgress): void {
    if (!this.#isTerminal || (time_ms < WORTH_MS && !this.#isShown)) return;
    this.#isShown = true;
    const share = processed / total;
    const counts = `${processed.toLocaleString('en')} of ${total.toLocaleString('en')} tokens read`;
    this.#output.write(drawnLine([barOf(share), `${Math.floor(100 * share)} %`, counts], false));
  }

  /** Removes the bar. */
  clear(): void {
    if (this.#isShown) this.#output.write(drawnLine([''], false));
    this.#isShown = false;
  }
}
