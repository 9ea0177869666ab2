/** A choice and its sequence -> the choice fed token by token. All that happens to a sampled token is here, in its order. */
import { type Engine, type Group, type Listener, Sequence } from '../engine/index.ts';
import type { OnpolicyError } from '../errors.ts';
import type { Handle, SampledRows } from '../native/index.ts';
import type { Choice } from './choice.ts';
import { type ContextShift, tokensToDrop, withoutDropped } from './context-shift.ts';
import type { ThinkingBudget } from './thinking-budget.ts';

/** What may happen to a choice besides getting tokens. */
export type ChoiceRunOptions = {
  readonly matcher: Handle | null;
  /** The grammar begins with the first token; else behind reasoning, if the answer begins with it. */
  readonly coversReasoning: boolean;
  /** How much it may reason; null: no limit. */
  readonly budget: ThinkingBudget | null;
  /** What is dropped when the context is full; null: nothing. */
  readonly shift: ContextShift | null;
};

/** One choice on its way through the engine. */
export class ChoiceRun implements Listener {
  readonly #engine: Engine;
  readonly #choice: Choice;
  readonly #budget: ThinkingBudget | null;
  readonly #shift: ContextShift | null;
  #sequence: Sequence; // after a shift another one
  #matcher: Handle | null; // of a grammar that waits for the end of the reasoning
  #isEndForced = false; // the end of the reasoning
  #forced = 0; // tokens of the row that are still to come

  constructor(
    engine: Engine,
    choice: Choice,
    sequence: Sequence,
    { matcher, coversReasoning, budget, shift }: ChoiceRunOptions,
  ) {
    this.#engine = engine;
    this.#choice = choice;
    this.#sequence = sequence;
    this.#matcher = matcher;
    this.#budget = budget;
    this.#shift = shift;
    if (matcher && coversReasoning) this.#constrain(matcher);
    else if (matcher && choice.message.isReasoning) this.#holdEnd(true);
    this.#beforeNext();
    engine.submit(sequence, this);
  }

  /** Prompt tokens that the prefix cache saved. */
  get cachedTokens(): number {
    return Math.max(0, this.#sequence.cachedTokens);
  }

  stop(): void {
    this.#engine.remove(this.#sequence);
  }

  onToken(token: number, rows: SampledRows, row: number, isFinal: boolean): boolean {
    if (this.#choice.onToken(token, rows, row, isFinal)) return true;
    if (this.#matcher || this.#budget) {
      this.#choice.catchUp(); // what may come next depends on the text
      this.#beforeNext();
    }
    return this.#shift !== null && this.#dropOldest(this.#shift, rows, row);
  }

  onComplete(): void {
    this.#choice.onComplete();
  }

  onError(error: OnpolicyError): void {
    this.#choice.onError(error);
  }

  #beforeNext(): void {
    if (this.#matcher && !this.#choice.message.isReasoning) this.#constrain(this.#matcher);
    if (this.#budget) this.#holdToBudget(this.#budget);
  }

  #constrain(matcher: Handle): void {
    this.#sequence.matcher = matcher;
    this.#matcher = null;
    this.#holdEnd(false);
  }

  /** Before its grammar begins, a sequence cannot end, and a draft behind the end of the reasoning would not be under the grammar. */
  #holdEnd(isHeld: boolean): void {
    this.#sequence.sampler.holdEnd(isHeld);
    if (this.#sequence.speculation) this.#sequence.speculation.isPaused = isHeld;
  }

  /**
   * Drafts are checked only as far as the budget goes. Where reasoning begins a second time behind the answer, a draft of its beginning
   * may be followed by a few tokens of it.
   */
  #holdToBudget({ maxTokens, end }: ThinkingBudget): void {
    const { message, reasoningTokens, canEndReasoning, tokenIds } = this.#choice;
    if (!message.isReasoning) this.#isEndForced = false;
    const left = maxTokens - reasoningTokens;
    if (left <= 0 && !this.#isEndForced && canEndReasoning) {
      this.#isEndForced = true;
      this.#sequence.sampler.force(end);
    }
    this.#sequence.outputsBeforeForced =
      message.isReasoning || tokenIds.length === 0 ? Math.max(0, left) : Infinity;
  }

  /** When the context is full, another sequence continues with the tokens that are left. Returns whether the previous one has ended. */
  #dropOldest(shift: ContextShift, rows: SampledRows, row: number): boolean {
    this.#forced = this.#forced > 0 ? this.#forced - 1 : forcedIn(rows, row);
    const before = this.#sequence;
    if (this.#forced > 0 || before.length < shift.contextSize) return false;
    const dropped = tokensToDrop(before.length, shift);
    const prompt = withoutDropped(before.tokens(0, before.length), shift.keep, dropped);
    this.#choice.droppedTokens += dropped;
    this.#sequence = follow(before, { ...before.group, prompt }, shift.contextSize);
    this.#engine.submit(this.#sequence, this);
    return true;
  }
}

/** What continues where a sequence has ended. Nothing drafts for it. */
function follow(before: Sequence, group: Group, contextSize: number): Sequence {
  const maxOutputs = Math.min(before.maxOutputs, contextSize - group.prompt.length);
  const next = new Sequence(group, before.index, before.sampler, { maxOutputs });
  next.matcher = before.matcher;
  next.outputsBeforeForced = before.outputsBeforeForced;
  next.cachedTokens = before.cachedTokens;
  Object.assign(next.times, before.times, { counted: 0, hasStarted: true });
  return next;
}

function forcedIn({ forced }: SampledRows, row: number): number {
  return forced ? forced.offsets[row + 1]! - forced.offsets[row]! : 0;
}
