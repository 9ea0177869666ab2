/**
 * A choice and its sequence -> the choice, fed token by token. Defines the order in which a choice and its features process each sampled
 * token.
 */
import type { Engine, Listener, Sequence } from '../engine/index.ts';
import type { SampledRows } from '../engine/native/index.ts';
import type { OnpolicyError } from '../errors.ts';
import type { Choice } from './choice.ts';
import type { ChoicePart } from './feature.ts';

/** Runs one choice in the engine. */
export class ChoiceRun implements Listener {
  readonly #engine: Engine;
  readonly #choice: Choice;
  readonly #parts: readonly ChoicePart[];
  readonly #followers: readonly ChoicePart[]; // parts that can continue the choice in another sequence
  #readers: readonly ChoicePart[]; // parts to call before the next token
  #sequence: Sequence;

  constructor(engine: Engine, choice: Choice, sequence: Sequence, parts: readonly ChoicePart[]) {
    this.#engine = engine;
    this.#choice = choice;
    this.#sequence = sequence;
    this.#parts = parts;
    this.#followers = parts.filter(({ follow }) => follow);
    this.#readers = parts.filter(({ beforeNext }) => beforeNext);
    this.#beforeNext();
    engine.submit(sequence, this);
  }

  /** Number of prompt tokens that the prefix cache saved. */
  get cachedTokens(): number {
    return Math.max(0, this.#sequence.place.cachedTokens);
  }

  /** Times of its sequence. */
  get times(): Sequence['times'] {
    return this.#sequence.times;
  }

  /** Lets the reasoning end before the next token. Returns false if the choice is not reasoning, or has ended. */
  endReasoning(): boolean {
    const choice = this.#choice;
    choice.catchUp();
    if (choice.isEnded || !choice.message.isReasoning) return false;
    for (const part of this.#parts) {
      part.endReasoning?.();
      if (part.endReasoning && part.beforeNext && !this.#readers.includes(part))
        this.#readers = [...this.#readers, part];
    }
    return true;
  }

  stop(): void {
    this.#engine.remove(this.#sequence);
  }

  onToken(token: number, rows: SampledRows, row: number, isFinal: boolean): boolean {
    if (this.#choice.onToken(token, rows, row, isFinal)) return true;
    if (this.#readers.length > 0) {
      this.#choice.catchUp(); // the features read the text that the choice has so far
      this.#beforeNext();
    }
    for (const part of this.#followers) {
      const next = part.follow!(this.#sequence, rows, row);
      if (!next) continue;
      this.#sequence = next;
      this.#engine.submit(next, this);
      return true;
    }
    return false;
  }

  onComplete(): void {
    this.#choice.onComplete();
  }

  onError(error: OnpolicyError): void {
    this.#choice.onError(error);
  }

  #beforeNext(): void {
    this.#readers = this.#readers.filter((part) => part.beforeNext!(this.#sequence));
  }
}
