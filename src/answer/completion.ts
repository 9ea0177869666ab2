/** A prepared request -> its choices, sampled together; read when all have ended, or as they change. */
import { onAbort, pending } from '../common/index.ts';
import { Sequence, type SequenceExtras } from '../engine/index.ts';
import { abortedBy, OnpolicyError } from '../errors.ts';
import type {
  ChatCompletionChoice,
  CompletionMetrics,
  CompletionTimings,
  PromptProgress,
  Usage,
} from '../protocol/index.ts';
import { forkSampler } from '../sampling/index.ts';
import { BeamRun, feedChoice, reportRules } from './beams.ts';
import { Choice, type ChoiceOptions } from './choice.ts';
import { ChoiceRun } from './choice-run.ts';
import type { ChoicePart, Feature, ResponseFields } from './feature.ts';
import type { OpenedRequest } from './open-request.ts';
import { PromptMeter } from './prompt-meter.ts';
import { metricsOf, type TimedRequest, timingsOf } from './timings.ts';

/** Runs the sequences of a request in the engine. */
type Run = {
  /** Number of prompt tokens that the prefix cache saved. */
  readonly cachedTokens: number;
  /** Resolves when `cachedTokens` is known. Null if the number of choices is known only at the end (beam search). */
  readonly placed: Promise<void> | null;
  /** Times of the sequence of each choice. */
  readonly times: readonly Sequence['times'][];
  /** Lets the reasoning of the choices end. Returns whether one of them is reasoning. */
  endReasoning(): boolean;
  stop(): void;
};

export class Completion {
  /** The choices by index. Beam search may find fewer than the request asks for; the number is final when the first choice changes. */
  readonly choices: Choice[];
  readonly #opened: OpenedRequest;
  readonly #features: readonly Feature[];
  readonly #parts: readonly (readonly ChoicePart[])[]; // by choice
  readonly #run: Run;
  readonly #meter: PromptMeter | null; // with `return_progress`
  readonly #listening: Disposable; // to the signal
  #open: number; // choices that have not ended
  readonly #touched = new Set<Choice>(); // choices changed since the last read; a set, because thousands may be unchanged
  #lease: Disposable | null = null; // lease of the engine's resources, until all choices have ended
  /** Reason why the completion failed or was stopped; null if it did neither. */
  error: OnpolicyError | null = null;
  #wake: (() => void) | null = null;

  constructor(opened: OpenedRequest, features: readonly Feature[]) {
    this.#opened = opened;
    this.#features = features;
    const { request, samplers, message, model } = opened;
    const { signal } = opened.context;
    if (signal?.aborted) throw abortedBy(signal);
    const options: ChoiceOptions = {
      rules: request.use_beam_search ? reportRules(opened.rules) : opened.rules,
      message,
      tokenizer: model.tokenizer,
      wantsLogprobs: request.logprobs,
      repetition: request.repetition_detection,
      tokensAsIds: request.return_tokens_as_token_ids,
      onChange: (choice) => this.#onChange(choice),
    };
    this.choices = samplers.map((_, index) => new Choice(index, options));
    this.#parts = this.choices.map((choice) => features.flatMap((feature) => feature.part?.(choice) ?? []));
    this.#open = samplers.length;
    this.#meter = request.return_progress
      ? new PromptMeter(opened.prompt.ids.length, () => this.#notify())
      : null;
    this.#listening = onAbort(signal, () => this.stop(abortedBy(signal)));
    this.#run = request.use_beam_search
      ? this.#searchBeams()
      : runSamplers(opened, this.choices, this.#parts, this.#meter);
  }

  /** Waits until the number of choices is known, and at most `waitMs` for `cachedTokens`. Returns early if the completion ends. */
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

  /** Number of prompt tokens that the prefix cache saved. */
  get cachedTokens(): number {
    return this.#run.cachedTokens;
  }

  /** Returns the newest progress of the prompt, or null if there is none since the last call. */
  takeProgress(): PromptProgress | null {
    return this.#meter?.take() ?? null;
  }

  /** Returns how long the parts of the request took so far, in the names of llama.cpp's server. */
  timingsSoFar(): CompletionTimings {
    return timingsOf(this.#timed());
  }

  /** Returns the same in these names and in those of vLLM's server. */
  timings(): { metrics: CompletionMetrics; timings: CompletionTimings } {
    const timed = this.#timed();
    return { metrics: metricsOf(timed), timings: timingsOf(timed) };
  }

  #timed(): TimedRequest {
    const { accepted_prediction_tokens: accepted, rejected_prediction_tokens: rejected } = this.usage;
    return {
      times: this.#run.times,
      promptTokens: this.#opened.prompt.ids.length,
      cachedTokens: this.cachedTokens,
      counts: this.choices.map(({ tokenIds }) => tokenIds.length),
      draftedTokens: accepted + rejected,
      acceptedTokens: accepted,
    };
  }

  /** Lets the reasoning of all choices end now. Returns false if none is reasoning. */
  endReasoning(): boolean {
    return !this.isEnded && this.#run.endReasoning();
  }

  /** Token counts that features add to the usage. Counts of features that are off are 0. */
  get usage(): NonNullable<Usage['completion_tokens_details']> {
    const counts = { accepted_prediction_tokens: 0, rejected_prediction_tokens: 0 };
    for (const feature of this.#features) Object.assign(counts, feature.usage?.());
    return counts;
  }

  /** True if reasoning is separated from the answer. */
  get readsReasoning(): boolean {
    return this.#opened.message.reasoning !== null;
  }

  /** Returns the fields of the response other than its choices. */
  fields(): ResponseFields {
    return Object.assign({}, ...this.#features.map((feature) => feature.fields?.()));
  }

  /** Returns the fields that features add to a choice that has ended. */
  reportOf({ index }: Choice): Partial<ChatCompletionChoice> {
    return Object.assign({}, ...this.#parts[index]!.map((part) => part.report?.()));
  }

  get isEnded(): boolean {
    return this.#open === 0 || this.error !== null;
  }

  /** Waits until every choice has ended and the features have finished. Rejects if a choice failed; the others are stopped. */
  async done(): Promise<void> {
    for (;;) {
      for (const choice of this.#takeTouched()) choice.catchUp();
      if (this.isEnded) break;
      await this.#changed();
    }
    if (this.error) throw this.error;
    for (const feature of this.#features) await feature.finish?.();
  }

  /** Waits for choices with new chunks and returns them; none if only the prompt made progress. Returns null when all have ended. Rejects if one failed. */
  async changes(): Promise<readonly Choice[] | null> {
    for (;;) {
      const changed = this.#takeTouched().filter((choice) =>
        choice.hasDelta(this.#opened.request.stream_interval),
      );
      if (changed.length > 0 || this.#meter?.hasNews) return changed;
      if (this.error) throw this.error;
      if (this.isEnded) return null;
      await this.#changed();
    }
  }

  /** Stops all running choices. Pending calls of {@link done} and {@link changes} reject with `error`. */
  stop(error: OnpolicyError): void {
    if (this.isEnded) return;
    this.error = error;
    this.#finish();
  }

  /** Takes over a lease and disposes of it when all choices have ended. */
  hold(lease: Disposable): void {
    this.#lease = lease;
    if (this.isEnded) lease[Symbol.dispose]();
  }

  /** Returns the changed choices by index, and clears the set. */
  #takeTouched(): Choice[] {
    const touched = [...this.#touched].sort((a, b) => a.index - b.index);
    this.#touched.clear();
    return touched;
  }

  #onChange(choice: Choice): void {
    this.#touched.add(choice);
    if (choice.isEnded) this.#open -= 1;
    if (choice.finish) for (const part of this.#parts[choice.index]!) part.finished?.();
    if (choice.error && !this.error) this.error = choice.error;
    if (this.isEnded) this.#finish();
    else this.#notify();
  }

  #finish(): void {
    this.#listening[Symbol.dispose]();
    this.#run.stop();
    this.#lease?.[Symbol.dispose]();
    this.#notify();
  }

  #searchBeams(): BeamRun {
    const { model, group, request, samplers, rules, matchers } = this.#opened;
    return new BeamRun({
      engine: model.engine,
      tokenizer: model.tokenizer,
      group,
      rules,
      sampler: samplers[0]!,
      forkSampler,
      matcher: matchers[0] ?? null,
      width: samplers.length,
      lengthPenalty: request.length_penalty,
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

  /** Wakes the reader after the next step has been started, so that its work does not delay the engine. */
  #notify(): void {
    if (this.#wake) setImmediate(this.#wake);
    this.#wake = null;
  }
}

/** Starts one sequence with one sampler per choice. */
function runSamplers(
  { model, group, samplers, rules }: OpenedRequest,
  choices: readonly Choice[],
  parts: readonly (readonly ChoicePart[])[],
  meter: PromptMeter | null,
): Run {
  const { promise: placed, resolve: onPlaced } = pending<void>();
  const sequences = samplers.map((sampler, index) => {
    const base: SequenceExtras = {
      onPlaced,
      maxOutputs: rules.maxTokens,
      ...(meter && index === 0 ? { onComputed: (tokens) => meter.advance(tokens) } : {}),
    };
    const extras = parts[index]!.map((part) => part.extras);
    return new Sequence(group, index, sampler, Object.assign(base, ...extras));
  });
  const runs = choices.map(
    (choice, index) => new ChoiceRun(model.engine, choice, sequences[index]!, parts[index]!),
  );
  if (meter) void placed.then(() => meter.start(runs[0]!.cachedTokens));
  return {
    placed,
    get cachedTokens() {
      return runs[0]!.cachedTokens;
    },
    get times() {
      return runs.map(({ times }) => times);
    },
    endReasoning() {
      return runs.filter((run) => run.endReasoning()).length > 0;
    },
    stop() {
      for (const run of runs) run.stop();
    },
  };
}
