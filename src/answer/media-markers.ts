/** Media parts of messages -> markers in the rendered prompt, and the prompt split at them. */
import { randomBytes } from 'node:crypto';
import { OnpolicyError } from '../errors.ts';
import type { MediaPart } from '../media/index.ts';

/** The markers of one request. Random: no text of a user can contain one. */
export class MediaMarkers {
  readonly #parts: MediaPart[] = [];
  readonly #name = `medium${randomBytes(16).toString('hex')}`;

  /** Text that stands for a part while the template renders. */
  mark(part: MediaPart): string {
    this.#parts.push(part);
    return `${this.#name}n${this.#parts.length - 1}n`;
  }

  /** Texts and parts in the order of the rendered prompt. Fails with `TEMPLATE_FAILED` when a part is not in it exactly once. */
  split(rendered: string): (string | MediaPart)[] {
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

  get count(): number {
    return this.#parts.length;
  }
}

function misplaced({ path }: MediaPart, where: string): OnpolicyError {
  return new OnpolicyError('TEMPLATE_FAILED', `${path}: the chat template writes this part ${where}`, {
    param: path,
  });
}
