/** Sampled tokens of one choice -> its message, ids, log-probabilities and end, ready to be taken whole or in deltas. */

import type { Listener } from '../engine/index.ts';
import type { SampledRows } from '../engine/native/index.ts';
import type { Tokenizer } from '../engine/tokenizer/index.ts';
import type { OnpolicyError } from '../errors.ts';
import type { TokenLogprob, ValidRepetition } from '../protocol/index.ts';
import { toTokenLogprob } from '../sampling/index.ts';
import type { MessagePlan } from '../template/chat-format/index.ts';
import { type MessageDelta, MessageOut } from './message-out.ts';
import { RepetitionDetector } from './repetition.ts';
import { type Finish, type StopRules, TextOut } from './text-out.ts';

/** Parts of a choice added since the last delta was taken. */
export type ChoiceDelta = {
  readonly message: MessageDelta;
  readonly tokenIds: readonly number[];
  readonly logprobs: readonly TokenLogprob[];
  /** Set on the last delta of a choice. */
  readonly finish: Finish | null;
};

/** Which parts of a choice the request wants. */
export type ChoiceOptions = {
  readonly rules: StopRules;
  readonly message: MessagePlan;
  readonly tokenizer: Tokenizer;
  readonly wantsLogprobs: boolean;
  /** The repetitions that end the choice, or null. */
  readonly repetition: ValidRepetition | null;
  readonly tokensAsIds: boolean;
  /** Called after every token, and when the choice ends or fails. */
  readonly onChange: (choice: Choice) => void;
};

/** End of a choice whose tokens repeat. */
const LOOP: Finish = { reason: 'length', stopReason: 'repetition_detected' };

/** End of a choice whose grammar is complete. It is reported like an end-of-sequence token. */
const END: Finish = { reason: 'stop', stopReason: null };

export class Choice implements Listener {
  readonly index: number;
  readonly tokenIds: number[] = [];
  readonly logprobs: TokenLogprob[] = [];
  finish: Finish | null = null;
  /** Tokens inside the reasoning, without its markers. */
  reasoningTokens = 0;
  error: OnpolicyError | null = null;
  readonly #options: ChoiceOptions;
  readonly message: MessageOut;
  readonly #out: TextOut;
  readonly #repetition: RepetitionDetector | null;
  #unread: { readonly rows: SampledRows; readonly row: number }[] = []; // to become log-probabilities
  readonly #reasoningLengths: number[] = []; // text lengths of the tokens inside the current reasoning
  #isMessageEnded = false;
  #taken = 0; // tokens handed out in deltas
  #isEndTaken = false;

  constructor(index: number, options: ChoiceOptions) {
    this.index = index;
    this.#options = options;
    this.#out = new TextOut(options.rules, options.tokenizer);
    this.message = new MessageOut(options.message);
    const { repetition, rules } = options;
    this.#repetition = repetition && new RepetitionDetector(repetition, rules.maxTokens);
  }

  get isEnded(): boolean {
    return this.finish !== null || this.error !== null;
  }

  /** Returns true if there are `interval` tokens, the first token or the end of the choice that no delta has reported. */
  hasDelta(interval: number): boolean {
    if (this.finish !== null && !this.#isEndTaken) return true;
    const count = this.tokenIds.length - this.#taken;
    return this.#taken === 0 ? count > 0 : count >= interval;
  }

  onToken(token: number, rows: SampledRows, row: number, isFinal: boolean): boolean {
    this.keepToken(token, rows, row);
    this.finish = this.#out.push(token) ?? (isFinal ? this.#out.end(END) : null);
    if (this.#repetition && !this.finish) this.finish = this.#endOfLoop(this.#repetition);
    this.#options.onChange(this);
    return this.finish !== null;
  }

  /** Returns the end of the choice if its last tokens repeat and it is long enough to end. */
  #endOfLoop(repetition: RepetitionDetector): Finish | null {
    const isLooping = repetition.push(this.tokenIds);
    return isLooping && this.tokenIds.length >= this.#options.rules.minTokens ? this.#out.end(LOOP) : null;
  }

  /** Adds a token to the ids and log-probabilities, but not to the text. */
  keepToken(token: number, rows: SampledRows, row: number): void {
    this.tokenIds.push(token);
    if (this.#options.wantsLogprobs) this.#unread.push({ rows, row });
  }

  /** Ends a choice for a reason that its tokens do not show. */
  end(finish: Finish): void {
    this.finish = this.#out.end(finish);
    this.#options.onChange(this);
  }

  onComplete(): void {
    this.end(END);
  }

  onError(error: OnpolicyError): void {
    this.error = error;
    this.#options.onChange(this);
  }

  /**
   * Brings {@link message} and {@link logprobs} up to the last token. The end of a choice does not depend on it, so
   * it runs after the next step has been started: before that it would delay the step.
   */
  catchUp(): void {
    const { tokenizer, tokensAsIds } = this.#options;
    for (const { rows, row } of this.#unread)
      this.logprobs.push(toTokenLogprob(tokenizer, rows, row, tokensAsIds));
    if (this.#unread.length > 0) this.#unread = [];
    this.#read(this.#out.takePieces());
    if (this.finish === null || this.#isMessageEnded) return;
    this.#isMessageEnded = true;
    this.message.finish();
  }

  /** True if the reasoning could end here: it has begun, and the last character is complete. Call it after {@link catchUp}. */
  get canEndReasoning(): boolean {
    return this.message.isThinking && this.#out.isWhole;
  }

  #read(pieces: readonly string[]): void {
    if (!this.message.readsReasoning)
      return this.message.push(pieces.length === 1 ? pieces[0]! : pieces.join(''));
    for (const piece of pieces) {
      const wasThinking = this.message.isThinking;
      this.message.push(piece);
      if (wasThinking) this.#countReasoning(piece);
    }
  }

  /** Counts a token inside the reasoning. When the reasoning ends, subtracts the tokens that spelled the end marker. */
  #countReasoning(piece: string): void {
    const lengths = this.#reasoningLengths;
    if (this.message.isThinking) {
      lengths.push(piece.length);
      this.reasoningTokens += 1;
      return;
    }
    let left = this.message.reasoningEndLength - piece.length;
    while (lengths.length > 0 && (left > 0 || lengths.at(-1) === 0)) {
      left -= lengths.pop()!; // 0: a part of its first character
      this.reasoningTokens -= 1;
    }
    lengths.length = 0;
  }

  /** Returns everything added since the last call. The deltas joined are the whole choice. */
  takeDelta(): ChoiceDelta {
    this.catchUp();
    const from = this.#taken;
    this.#taken = this.tokenIds.length;
    this.#isEndTaken = this.finish !== null;
    return {
      message: this.message.takeDelta(),
      tokenIds: this.tokenIds.slice(from),
      logprobs: this.logprobs.slice(from),
      finish: this.finish,
    };
  }
}
