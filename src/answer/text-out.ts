/** Sampled ids of one choice -> text deltas, stop strings, and the reason why it ended. */

import { Detokenizer, type SpecialTokens, type Tokenizer } from '../engine/tokenizer/index.ts';
import { StopScanner, type StopStrings } from './stop-strings.ts';

/** The reason why a choice ended. */
export type Finish = {
  readonly reason: 'stop' | 'length';
  /** The stop string, the stop token's id, or null for the end-of-sequence token and for `length`. */
  readonly stopReason: string | number | null;
};

/** Rules for when a choice ends and which tokens become text. */
export type StopRules = SpecialTokens & {
  readonly stops: StopStrings | null;
  readonly stopIds: ReadonlySet<number>;
  /** Ids that end a generation unless `ignoreEos` is set. All but `eosId` are reported as the stop reason. */
  readonly endIds: ReadonlySet<number>;
  readonly eosId: number;
  readonly ignoreEos: boolean;
  readonly minTokens: number;
  readonly maxTokens: number;
  readonly includeStop: boolean;
  /** Texts of end tokens that say how the last message ends, for formats whose answers are messages. They are parsed, but never shown. */
  readonly messageEnds?: ReadonlyMap<number, string>;
};

/** Converts the ids of one choice to text. Without stop strings, text is decoded only when it is taken. */
export class TextOut {
  readonly #rules: StopRules;
  readonly #detokenizer: Detokenizer;
  readonly #scanner: StopScanner | null;
  #unread: number[] = []; // ids that are not decoded yet; used only without stop strings
  #isTailUnread = false; // true if the detokenizer's rest is not decoded yet
  #messageEnd = ''; // text to parse behind all others
  #held = ''; // text whose end may grow into a stop string
  #pieces: string[] = []; // text released since the last take, one piece per token
  #released = 0; // units of text
  #count = 0;

  constructor(rules: StopRules, tokenizer: Tokenizer) {
    this.#rules = rules;
    this.#detokenizer = new Detokenizer(tokenizer, rules);
    this.#scanner = rules.stops ? new StopScanner(rules.stops) : null;
  }

  /** Number of tokens read so far. */
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
    } else this.#messageEnd = this.#rules.messageEnds?.get(id) ?? '';
    return finish && this.end(finish);
  }

  /** Ends the choice: releases the held text, unless it contains a stop string. */
  end(finish: Finish): Finish {
    this.#isTailUnread = this.#scanner === null;
    const stopped = this.#scanner ? this.#scan(this.#scanner, this.#detokenizer.finish()) : null;
    if (stopped) return stopped;
    this.#release(this.#held.length);
    return finish;
  }

  /** True if the bytes so far are whole characters. Call it after {@link takePieces}. */
  get isWhole(): boolean {
    return this.#detokenizer.isWhole;
  }

  /**
   * Returns the text released since the last call: one piece for each token that can have text, the rest at the end, and the text of the
   * end token.
   */
  takePieces(): string[] {
    const pieces = this.#pieces;
    this.#pieces = [];
    for (const id of this.#unread) pieces.push(this.#detokenizer.push(id));
    if (this.#unread.length > 0) this.#unread = [];
    if (this.#isTailUnread) pieces.push(this.#detokenizer.finish());
    this.#isTailUnread = false;
    if (this.#messageEnd !== '') pieces.push(this.#messageEnd);
    this.#messageEnd = '';
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
    // Never splits a surrogate pair between two deltas.
    const last = this.#held.charCodeAt(length - 1);
    const end = length < this.#held.length && last >= 0xd800 && last <= 0xdbff ? length - 1 : length;
    const text = this.#held.slice(0, end);
    if (this.#pieces.length === 0) this.#pieces.push(text);
    else this.#pieces[this.#pieces.length - 1] += text;
    this.#held = this.#held.slice(end);
    this.#released += end;
  }
}
