/** Media parts of messages -> markers in the rendered prompt, and the prompt split at them. */
import { randomBytes } from 'node:crypto';
import { errorAt, type OnpolicyError } from '../errors.ts';
import type { MediaPart } from '../media/index.ts';

/**
 * The markers of one request. Random: no text of a user can contain one. Where the chat template itself writes something for
 * a picture, that marks its place, and what looks like it in a text of a user is hidden until the prompt is split.
 */
export class MediaMarkers {
  readonly #parts: MediaPart[] = [];
  readonly #name = `medium${randomBytes(16).toString('hex')}`;
  readonly #placeholder: string | null;
  #isWritten = false; // the template writes the places

  /** `placeholder`: what the chat template writes for a picture; null: nothing. */
  constructor(placeholder: string | null = null) {
    this.#placeholder = placeholder;
  }

  /** Whether the template writes something for a picture. */
  get areWritten(): boolean {
    return this.#placeholder !== null;
  }

  /** Text that stands for a part while the template renders. */
  mark(part: MediaPart): string {
    this.#parts.push(part);
    return `${this.#name}n${this.#parts.length - 1}n`;
  }

  /** Adds a part for which the template writes the placeholder. */
  add(part: MediaPart): void {
    this.#isWritten = true;
    this.#parts.push(part);
  }

  /** A text of a user without the placeholder. */
  hide(text: string): string {
    return this.#placeholder === null ? text : text.replaceAll(this.#placeholder, this.#name);
  }

  /** Texts and parts in the order of the rendered prompt. Fails with `TEMPLATE_FAILED` when a part is not in it exactly once. */
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
