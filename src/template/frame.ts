/** One call of a template, a macro or a recursive loop -> its variables and the text it printed. */
import type { RenderState } from './python/render-state.ts';
import type { Value } from './python/values.ts';

/** How statements ended: 0 means at their end, other values by `break` or `continue`. */
export type Ending = 0 | 1 | 2;
export const DONE = 0;
export const BREAK = 1;
export const CONTINUE = 2;

export class Frame {
  readonly state: RenderState;
  readonly slots: (Value | undefined)[];
  /** The frame of the enclosing function. */
  readonly outer: Frame | null;
  text = '';
  /** The text of the last captured block. */
  captured: Value = '';

  constructor(state: RenderState, slotCount: number, outer: Frame | null) {
    this.state = state;
    this.slots = new Array(slotCount);
    this.outer = outer;
  }

  /** Runs statements and stores their output in `captured`. Returns how they ended. */
  capture(body: (frame: Frame) => Ending): Ending {
    const before = this.text;
    this.text = '';
    const ending = body(this);
    this.state.reserve(this.text.length);
    this.captured = this.text;
    this.text = before;
    return ending;
  }
}
