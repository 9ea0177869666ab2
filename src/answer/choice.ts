/** Sampled tokens of one choice -> its message, ids, log-probabilities and end, ready to be taken whole or in deltas. */
import type { ExpertRows, Listener } from '../engine/index.ts';
import type { OnpolicyError } from '../errors.ts';
import type { MessagePlan } from '../models/index.ts';
import type { SampledRows } from '../native/index.ts';
import type { TokenLogprob } from '../protocol/index.ts';
import { toTokenLogprob } from '../sampling/index.ts';
import type { Tokenizer } from '../tokenizer/index.ts';
import { type MessageDelta, MessageOut } from './message-out.ts';
import { type Finish, type StopRules, TextOut } from './text-out.ts';

/** What came since the last take. */
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
  readonly tokensAsIds: boolean;
  /** Tokens of the prompt that were dropped. Default 0. */
  readonly droppedTokens?: number;
  /** Which experts its tokens took; absent or null: nobody asks. */
  readonly experts?: ExpertRows | null;
  /** Called after every token, and when the choice ends or fails. */
  readonly onChange: (choice: Choice) => void;
};

/** A grammar that is complete ends its choice like the end of a sequence. */
const END: Finish = { reason: 'stop', stopReason: null };

export class Choice implements Listener {
  readonly index: number;
  readonly tokenIds: number[] = [];
  readonly logprobs: TokenLogprob[] = [];
  finish: Finish | null = null;
  /** Tokens inside the reasoning, without its markers. */
  reasoningTokens = 0;
  error: OnpolicyError | null = null;
  readonly experts: ExpertRows | null;
  /** Tokens of the prompt and of this that were dropped because the context was full. */
  droppedTokens: number;
  readonly #options: ChoiceOptions;
  readonly message: MessageOut;
  readonly #out: TextOut;
  #unread: { readonly rows: SampledRows; readonly row: number }[] = []; // to become log-probabilities
  readonly #reasoningLengths: number[] = []; // of the texts of tokens inside the current reasoning
  #isMessageEnded = false;
  #taken = 0; // tokens handed out in deltas
  #isEndTaken = false;

  constructor(index: number, options: ChoiceOptions) {
    this.index = index;
    this.experts = options.experts ?? null;
    this.droppedTokens = options.droppedTokens ?? 0;
    this.#options = options;
    this.#out = new TextOut(options.rules, options.tokenizer);
    this.message = new MessageOut(options.message);
  }

  get isEnded(): boolean {
    return this.finish !== null || this.error !== null;
  }

  /** Whether a delta is ready to be taken. */
  get hasDelta(): boolean {
    return this.#taken < this.tokenIds.length || (this.finish !== null && !this.#isEndTaken);
  }

  onToken(token: number, rows: SampledRows, row: number, isFinal: boolean): boolean {
    this.keepToken(token, rows, row);
    this.finish = this.#out.push(token) ?? (isFinal ? this.#out.end(END) : null);
    this.#options.onChange(this);
    return this.finish !== null;
  }

  /** Adds a token that is no part of the text. */
  keepToken(token: number, rows: SampledRows, row: number): void {
    this.tokenIds.push(token);
    if (this.#options.wantsLogprobs) this.#unread.push({ rows, row });
  }

  /** Ends a choice whose tokens do not say so themselves. */
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

  /** Whether reasoning could end here: it has begun, and no character is half written. Call it after {@link catchUp}. */
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

  /** Counts a token that came inside the reasoning. Those that spell the end of it turn out to be none of it. */
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

  /** Takes what came since the last call. Joined, the deltas are the whole choice. */
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
