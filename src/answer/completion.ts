/** A prepared request -> its choices, sampled together; taken whole, or as events while they come. */
import {
  type Engine,
  ExpertRows,
  type Group,
  type SavedPrompt,
  Sequence,
  type Speculation,
} from '../engine/index.ts';
import { abortedBy, errorAt, OnpolicyError } from '../errors.ts';
import type { MessagePlan } from '../models/index.ts';
import type { Handle, SamplerHandle } from '../native/index.ts';
import type { PromptLogprobs } from '../protocol/index.ts';
import type { LogitsHook, PromptScores } from '../sampling/index.ts';
import { forkSampler } from '../sampling/index.ts';
import type { Tokenizer } from '../tokenizer/index.ts';
import { BeamRun, feedChoice, reportRules } from './beams.ts';
import { Choice } from './choice.ts';
import { ChoiceRun } from './choice-run.ts';
import type { ContextShift } from './context-shift.ts';
import type { StopRules } from './text-out.ts';
import type { ThinkingBudget } from './thinking-budget.ts';

export type PreparedCompletion = {
  readonly engine: Engine;
  readonly tokenizer: Tokenizer;
  readonly group: Group;
  /** One per choice. */
  readonly samplers: readonly SamplerHandle[];
  readonly rules: StopRules;
  /** With beam search, its `length_penalty`; null: sampling. */
  readonly lengthPenalty: number | null;
  readonly message: MessagePlan;
  readonly wantsLogprobs: boolean;
  readonly tokensAsIds: boolean;
  readonly signal: AbortSignal | undefined;
  /** Collects the prompt's log-probabilities, once for all choices. */
  readonly promptScores: PromptScores | null;
  /** Grammars that constrain the choices; one each, or none. */
  readonly matchers: readonly Handle[];
  /** They begin with the first token; else behind reasoning, if an answer begins with it. */
  readonly coversReasoning: boolean;
  /** How much each choice may reason; null: no limit. */
  readonly thinkingBudget: ThinkingBudget | null;
  /** Receives the cache of the prompt, once for all choices. */
  readonly savedPrompt: SavedPrompt | null;
  /** Whether each choice says which experts its tokens took. */
  readonly recordsExperts: boolean;
  /** What is dropped when the context is full; null: nothing, the choices end. */
  readonly shift: ContextShift | null;
  /** One per choice, or none. */
  readonly hooks: readonly LogitsHook[];
  /** What drafts for the choices: one each, or none. */
  readonly speculations: readonly Speculation[];
  /** Takes the tokens of each finished choice, for the drafts of later ones. */
  readonly remember: (choice: number, answer: readonly number[]) => void;
};

/** What moves a request's sequences through the engine. */
type Run = {
  /** Prompt tokens that the prefix cache saved. */
  readonly cachedTokens: number;
  /** Resolves when they are known; null: its choices are not known before they are done. */
  readonly placed: Promise<void> | null;
  stop(): void;
};

export class Completion {
  /** One per choice, by index. With beam search there may be fewer than asked for, known when the first has something. */
  readonly choices: Choice[];
  readonly #prepared: PreparedCompletion;
  readonly #run: Run;
  readonly #onAbort = (): void => this.stop(abortedBy(this.#prepared.signal));
  #open: number; // choices that have not ended
  readonly #touched = new Set<Choice>(); // those with news since the reader looked: there may be thousands that wait
  #lease: Disposable | null = null; // of what the engine needs until all choices have ended
  /** Why it failed or was stopped; null: it did not. */
  error: OnpolicyError | null = null;
  #wake: (() => void) | null = null;

  constructor(prepared: PreparedCompletion) {
    this.#prepared = prepared;
    const { samplers, signal, lengthPenalty } = prepared;
    if (signal?.aborted) throw abortedBy(signal);
    const onChange = (choice: Choice): void => this.#onChange(choice);
    const rules = lengthPenalty === null ? prepared.rules : reportRules(prepared.rules);
    const droppedTokens = prepared.shift?.dropped ?? 0;
    const options = { ...prepared, rules, onChange, droppedTokens };
    let experts: ExpertRows | null = null;
    this.choices = samplers.map((_, index) => {
      if (prepared.recordsExperts) experts = new ExpertRows(prepared.group.prompt.length, experts);
      return new Choice(index, { ...options, experts });
    });
    this.#open = samplers.length;
    signal?.addEventListener('abort', this.#onAbort, { once: true });
    this.#run =
      lengthPenalty === null ? runSamplers(prepared, this.choices) : this.#searchBeams(lengthPenalty);
  }

  /** Waits until the number of choices is known, and, for at most `waitMs`, what the prefix cache saves. Ends early with the completion. */
  async begun(waitMs: number): Promise<void> {
    const { placed } = this.#run;
    if (placed === null) {
      while (this.#touched.size === 0 && !this.isEnded) await this.#changed();
      return;
    }
    if (this.isEnded) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, waitMs);
    });
    await Promise.race([placed, this.#changed(), late]);
    clearTimeout(timer);
  }

  /** Prompt tokens that the prefix cache saved. */
  get cachedTokens(): number {
    return this.#run.cachedTokens;
  }

  /** Drafts of all choices that had a row, and those of them that were sampled. */
  get drafts(): { readonly drafted: number; readonly accepted: number } {
    const sum = { drafted: 0, accepted: 0 };
    for (const { drafted, accepted } of this.#prepared.speculations) {
      sum.drafted += drafted;
      sum.accepted += accepted;
    }
    return sum;
  }

  /** Whether reasoning is told from the answers. */
  get readsReasoning(): boolean {
    return this.#prepared.message.reasoning !== null;
  }

  /** `prompt_logprobs` of the answer, once it is done; null when the request wants none. */
  promptLogprobs(): (PromptLogprobs | null)[] | null {
    const { promptScores, tokenizer } = this.#prepared;
    return promptScores?.entries(tokenizer) ?? null;
  }

  get isEnded(): boolean {
    return this.#open === 0 || this.error !== null;
  }

  /** Waits until every choice has ended. Rejects when one failed, after stopping the others. */
  async done(): Promise<void> {
    for (;;) {
      for (const choice of this.#takeTouched()) choice.catchUp();
      if (this.isEnded) break;
      await this.#changed();
    }
    if (this.error) throw this.error;
  }

  /** The choices that have something new, once there are any; null when all have ended. Rejects when one failed. */
  async changes(): Promise<readonly Choice[] | null> {
    for (;;) {
      const changed = this.#takeTouched().filter((choice) => choice.hasDelta);
      if (changed.length > 0) return changed;
      if (this.error) throw this.error;
      if (this.isEnded) return null;
      await this.#changed();
    }
  }

  /** Stops what still runs; a caller that waits gets `error`. */
  stop(error: OnpolicyError): void {
    if (this.isEnded) return;
    this.error = error;
    this.#finish();
  }

  /** Disposes of the lease when all choices have ended. */
  hold(lease: Disposable): void {
    this.#lease = lease;
    if (this.isEnded) lease[Symbol.dispose]();
  }

  /** By index. */
  #takeTouched(): Choice[] {
    const touched = [...this.#touched].sort((a, b) => a.index - b.index);
    this.#touched.clear();
    return touched;
  }

  #onChange(choice: Choice): void {
    this.#touched.add(choice);
    if (choice.isEnded) this.#open -= 1;
    if (choice.finish) this.#prepared.remember(choice.index, choice.tokenIds);
    if (choice.error && !this.error) this.error = choice.error;
    if (this.isEnded) this.#finish();
    else this.#notify();
  }

  #finish(): void {
    this.#prepared.signal?.removeEventListener('abort', this.#onAbort);
    this.#run.stop();
    this.#lease?.[Symbol.dispose]();
    this.#notify();
  }

  #searchBeams(lengthPenalty: number): BeamRun {
    const { samplers, rules, matchers, coversReasoning } = this.#prepared;
    const matcher = matchers[0] ?? null;
    if (matcher && !coversReasoning && this.choices[0]!.message.isReasoning)
      throw errorAt(
        'use_beam_search',
        'UNSUPPORTED',
        'a constraint that begins after reasoning cannot be searched with beams',
      );
    return new BeamRun({
      ...this.#prepared,
      sampler: samplers[0]!,
      forkSampler,
      matcher,
      width: samplers.length,
      lengthPenalty,
      onEnd: (result) => {
        if (this.isEnded) return;
        if (result instanceof OnpolicyError) return this.choices[0]!.onError(result);
        this.choices.length = this.#open = result.length; // a search may find fewer than were asked for
        for (const [index, hypothesis] of result.entries())
          feedChoice(this.choices[index]!, hypothesis, rules);
      },
    });
  }

  #changed(): Promise<void> {
    return new Promise((wake) => {
      this.#wake = wake;
    });
  }

  /** Wakes the reader after the next step is on its way, so that its work costs the engine no time. */
  #notify(): void {
    if (this.#wake) setImmediate(this.#wake);
    this.#wake = null;
  }
}

/** One sequence and one sampler per choice. */
function runSamplers(prepared: PreparedCompletion, choices: readonly Choice[]): Run {
  const { engine, group, samplers, promptScores, savedPrompt, hooks, matchers, rules } = prepared;
  const { speculations, shift, thinkingBudget: budget, coversReasoning } = prepared;
  let onPlaced = (): void => {};
  const placed = new Promise<void>((resolve) => {
    onPlaced = resolve;
  });
  const room = shift ? shift.contextSize - group.prompt.length : Infinity;
  const sequences = samplers.map(
    (sampler, index) =>
      new Sequence(group, index, sampler, {
        promptScores: index === 0 ? promptScores : null,
        savedPrompt: index === 0 ? savedPrompt : null,
        hook: hooks[index] ?? null,
        onPlaced,
        maxOutputs: Math.min(rules.maxTokens, room),
        speculation: speculations[index] ?? null,
        experts: choices[index]!.experts,
      }),
  );
  const runs = choices.map(
    (choice, index) =>
      new ChoiceRun(engine, choice, sequences[index]!, {
        matcher: matchers[index] ?? null,
        coversReasoning,
        budget,
        shift,
      }),
  );
  return {
    placed,
    get cachedTokens() {
      return runs[0]!.cachedTokens;
    },
    stop() {
      for (const run of runs) run.stop();
    },
  };
}
