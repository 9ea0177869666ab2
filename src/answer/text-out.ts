/** Sampled ids of one choice -> text deltas, stop strings, and the reason why it ended. */

import { Detokenizer, type SpecialTokens, type Tokenizer } from '../tokenizer/index.ts';
import { StopScanner, type StopStrings } from './stop-strings.ts';

/** How a choice ends. */
export type Finish = {
  readonly reason: 'stop' | 'length';
  /** The stop string, the stop token's id, or null for the end-of-sequence token and for `length`. */
  readonly stopReason: string | number | null;
};

/** When a choice ends and what of it becomes text. */
export type StopRules = SpecialTokens & {
  readonly stops: StopStrings | null;
  readonly stopIds: ReadonlySet<number>;
  /** Ids that end a generation by themselves; all but the primary one give their id as the reason. */
  readonly endIds: ReadonlySet<number>;
  readonly eosId: number;
  readonly ignoreEos: boolean;
  readonly minTokens: number;
  readonly maxTokens: number;
  readonly includeStop: boolean;
};

/** One choice's way from ids to text. Where no stop string is looked for, text is made only when it is taken. */
export class TextOut {
  readonly #rules: StopRules;
  readonly #detokenizer: Detokenizer;
  readonly #scanner: StopScanner | null;
  #unread: number[] = []; // ids whose text was not needed yet; only without stop strings
  #isTailUnread = false; // the same for what is left at the end
  #held = ''; // its end may grow into a stop string
  #pieces: string[] = []; // released since the last take, a piece a token
  #released = 0; // units of text
  #count = 0;

  constructor(rules: StopRules, tokenizer: Tokenizer) {
    this.#rules = rules;
    this.#detokenizer = new Detokenizer(tokenizer, rules);
    this.#scanner = rules.stops ? new StopScanner(rules.stops) : null;
  }

  /** Tokens read so far. */
  get count(): number {
    return this.#count;
  }

  /** Reads one sampled token. Returns the finish when it ends the choice, else null. */
  push(id: number): Finish | null {
    this.#count += 1;
    const finish = this.#tokenFinish(id);
    if (this.#scanner) this.#pieces.push('');
    if (finish?.reason !== 'stop' || this.#rules.includeStop) {
      const stopped = this.#scanner ? this.#scan(this.#scanner, this.#detokenizer.push(id)) : null;
      if (stopped) return stopped;
      if (!this.#scanner) this.#unread.push(id);
    }
    return finish && this.end(finish);
  }

  /** Ends the choice: releases what was held back, unless a stop string shows up in it. */
  end(finish: Finish): Finish {
    this.#isTailUnread = this.#scanner === null;
    const stopped = this.#scanner ? this.#scan(this.#scanner, this.#detokenizer.finish()) : null;
    if (stopped) return stopped;
    this.#release(this.#held.length);
    return finish;
  }

  /** Whether the bytes so far are whole characters. Call it after {@link takePieces}. */
  get isWhole(): boolean {
    return this.#detokenizer.isWhole;
  }

  /** The text released since the last call: a piece for each token that can have text, and what is left at the end. */
  takePieces(): string[] {
    const pieces = this.#pieces;
    this.#pieces = [];
    for (const id of this.#unread) pieces.push(this.#detokenizer.push(id));
    if (this.#unread.length > 0) this.#unread = [];
    if (this.#isTailUnread) pieces.push(this.#detokenizer.finish());
    this.#isTailUnread = false;
    return pieces;
  }

  #tokenFinish(id: number): Finish | null {
    const rules = this.#rules;
    if (this.#count < rules.minTokens) return null;
    if (id === rules.eosId && !rules.ignoreEos) return { reason: 'stop', stopReason: null };
    const endsByItself = rules.endIds.has(id) && !rules.ignoreEos;
    if (endsByItself || rules.stopIds.has(id)) return { reason: 'stop', stopReason: id };
    if (this.#count >= rules.maxTokens) return { reason: 'length', stopReason: null };
    return null;
  }

  #scan(scanner: StopScanner, text: string): Finish | null {
    if (text === '') return null;
    this.#held += text;
    const match = scanner.push(text);
    if (match && this.#count > this.#rules.minTokens) {
      this.#release((this.#rules.includeStop ? match.end : match.start) - this.#released);
      this.#held = '';
      return { reason: 'stop', stopReason: this.#rules.stops!.strings[match.index]! };
    }
    this.#release(this.#rules.includeStop ? this.#held.length : this.#held.length - scanner.pending);
    return null;
  }

  #release(length: number): void {
    if (length <= 0) return;
    // A surrogate pair is never split between two deltas.
    const last = this.#held.charCodeAt(length - 1);
    const end = length < this.#held.length && last >= 0xd800 && last <= 0xdbff ? length - 1 : length;
    const text = this.#held.slice(0, end);
    if (this.#pieces.length === 0) this.#pieces.push(text);
    else this.#pieces[this.#pieces.length - 1] += text;
    this.#held = this.#held.slice(end);
    this.#released += end;
  }
}
