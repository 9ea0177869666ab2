/** Media parts of messages -> markers in the rendered prompt, and the prompt split at them. */
import { randomBytes } from 'node:crypto';
import { errorAt, type OnpolicyError } from '../errors.ts';
import type { MediaPart } from '../models/media/index.ts';

/**
 * The markers of one request. They are random, so that no text of a user contains one. If the chat template writes a placeholder for a
 * picture itself, the placeholder marks the place, and the same characters in a user's text are replaced until the prompt is split.
 */
export class MediaMarkers {
  readonly #parts: MediaPart[] = [];
  #made: string | null = null;
  readonly #placeholder: string | null;
  #isWritten = false; // the template writes the places

  /** `placeholder` is the text that the chat template writes for a picture; null if it writes none. */
  constructor(placeholder: string | null = null) {
    this.#placeholder = placeholder;
  }

  /** Created on first use, because random bytes take a third of the time of a small render. */
  get #name(): string {
    this.#made ??= `medium${randomBytes(16).toString('hex')}`;
    return this.#made;
  }

  /** True if the template writes a placeholder for a picture. */
  get areWritten(): boolean {
    return this.#placeholder !== null;
  }

  /** Forgets the parts, for another render. */
  restart(): this {
    this.#parts.length = 0;
    this.#isWritten = false;
    return this;
  }

  /** Returns markers of the same kind for a render that is only inspected. */
  unused(): MediaMarkers {
    return new MediaMarkers(this.#placeholder);
  }

  /** Registers a part and returns the text that stands for it while the template renders. */
  mark(part: MediaPart): string {
    this.#parts.push(part);
    return `${this.#name}n${this.#parts.length - 1}n`;
  }

  /** Registers a part whose place the template marks with the placeholder. */
  add(part: MediaPart): void {
    this.#isWritten = true;
    this.#parts.push(part);
  }

  /** Returns a user's text with the placeholder replaced. */
  hide(text: string): string {
    return this.#placeholder === null ? text : text.replaceAll(this.#placeholder, this.#name);
  }

  /**
   * Returns texts and parts in the order of the rendered prompt. Fails with `TEMPLATE_FAILED` if a part is missing or appears more than
   * once.
   */
  split(rendered: string): (string | MediaPart)[] {
    return this.#isWritten ? this.#splitWritten(rendered) : this.#splitMarked(rendered);
  }

  get count(): number {
    return this.#parts.length;
  }

  #splitMarked(rendered: string): (string | MediaPart)[] {
    const pieces = rendered.split(new RegExp(`${this.#name}n(\\d+)n`));
    const missing = new Set(this.#parts);
    const parts = pieces.map((piece, at) => {
      if (at % 2 === 0) return piece;
      const part = this.#parts[Number(piece)]!;
      if (!missing.delete(part)) throw misplaced(part, 'more than once');
      return part;
    });
    for (const part of missing) throw misplaced(part, 'nowhere');
    return parts.filter((part) => part !== '');
  }

  #splitWritten(rendered: string): (string | MediaPart)[] {
    const placeholder = this.#placeholder!;
    const texts = rendered.split(placeholder);
    const [found, count] = [texts.length - 1, this.#parts.length];
    if (found < count) throw misplaced(this.#parts[found]!, 'nowhere');
    if (found > count) throw misplaced(this.#parts.at(-1)!, 'more than once');
    return texts
      .flatMap((text, at) => [
        ...(at > 0 ? [this.#parts[at - 1]!] : []),
        text.replaceAll(this.#name, placeholder),
      ])
      .filter((part) => part !== '');
  }
}

function misplaced({ path }: MediaPart, where: string): OnpolicyError {
  return errorAt(path, 'TEMPLATE_FAILED', `the chat template writes this part ${where}`);
}
