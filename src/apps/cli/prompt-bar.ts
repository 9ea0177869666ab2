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
  #newest: PromptProgress | null = null;
  /** Draws the bar when a first step takes long. */
  #timer: NodeJS.Timeout | undefined;

  constructor(output: Writable) {
    this.#output = output;
    this.#isTerminal = isWatched(output);
  }

  /** Fields that a request needs to report its progress; none if there is no terminal. */
  get fields(): { return_progress?: true } {
    return this.#isTerminal ? { return_progress: true } : {};
  }

  /** Draws the bar over the last one, or later if it is too early for one. */
  show(progress: PromptProgress): void {
    if (!this.#isTerminal) return;
    this.#newest = progress;
    if (this.#isShown || progress.time_ms >= WORTH_MS) this.#draw();
    else this.#timer ??= setTimeout(() => this.#draw(), WORTH_MS - progress.time_ms);
  }

  /** Removes the bar. */
  clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#isShown) this.#output.write(drawnLine([], false));
    this.#isShown = false;
  }

  #draw(): void {
    clearTimeout(this.#timer);
    this.#isShown = true;
    const { processed, total } = this.#newest!;
    const share = processed / total;
    const counts = `${processed.toLocaleString('en')} of ${total.toLocaleString('en')} tokens read`;
    this.#output.write(drawnLine([barOf(share), `${Math.floor(100 * share)} %`, counts], false));
  }
}
