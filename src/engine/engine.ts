/** Requests -> sampled tokens: submit, abort, close and the step loop. Read this first, then follow the imports. */
import type { Backend, StepResult } from '../backends/index.ts';
import { fromNative, OnpolicyError } from '../errors.ts';
import { ROW_STATUS, type SampledRows } from '../native/index.ts';
import type { LogitsHook } from '../sampling/index.ts';
import { type Plan, Scheduler, type SchedulerOptions } from './scheduler.ts';
import type { Group, Sequence } from './sequence.ts';
import { scoredRows, toStep } from './step-layout.ts';

/** Who hears of a sequence's tokens. Called between steps; must not throw. */
export type Listener = {
  /**
   * A token was sampled, `row` of `rows`, or forced by the grammar right after that one, where no log-probabilities were
   * asked for. `isFinal`: the grammar lets nothing but the end follow. Returns true when the sequence has ended.
   */
  onToken(token: number, rows: SampledRows, row: number, isFinal: boolean): boolean;
  /** The grammar of the sequence is complete and nothing may follow: it has ended without a further token. */
  onComplete(): void;
  /**
   * Instead of {@link onToken}, where the sampler hands out candidates: those of `row` in `rows.candidates`. The sequence
   * waits until {@link Engine.advance}.
   */
  onCandidates?(rows: SampledRows, row: number): void;
  /** The sequence cannot go on. */
  onError(error: OnpolicyError): void;
};

/** Numbers about one engine. */
export type EngineStats = {
  /** Sequences that run, and that wait. */
  readonly running: number;
  readonly waiting: number;
  /** Cells of the KV cache: in use by running sequences, kept for their prefix, and in all. */
  readonly kvTokensInUse: number;
  readonly kvTokensCached: number;
  readonly kvTokens: number;
  /** Since the engine was made. */
  readonly steps: number;
  readonly promptTokens: number;
  readonly generatedTokens: number;
  /** Sampled per second over the last seconds of work. */
  readonly tokensPerSecond: number;
};

/** The numbers of several engines together. */
export function sumStats(stats: readonly EngineStats[]): EngineStats {
  const sum = (field: keyof EngineStats): number => stats.reduce((total, one) => total + one[field], 0);
  return {
    running: sum('running'),
    waiting: sum('waiting'),
    kvTokensInUse: sum('kvTokensInUse'),
    kvTokensCached: sum('kvTokensCached'),
    kvTokens: sum('kvTokens'),
    steps: sum('steps'),
    promptTokens: sum('promptTokens'),
    generatedTokens: sum('generatedTokens'),
    tokensPerSecond: sum('tokensPerSecond'),
  };
}

/** Work on the backend that waits for the end of the running step. */
type Errand = {
  /** Never rejects. */
  readonly run: () => Promise<void>;
  readonly reject: (cause: unknown) => void;
};

/** An abort cuts a running step short only when it wastes at least this many prompt tokens. */
const CUT_STEP_AT_TOKENS = 32;

const NO_TOKENS = new Int32Array(0);

/** Runs the sequences of one model. */
export class Engine {
  readonly #backend: Backend;
  readonly #scheduler: Scheduler;
  readonly #maxRunning: number;
  readonly #listeners = new Map<Sequence, Listener>();
  readonly #removed = new Set<Sequence>(); // to be taken out when the running step ends
  readonly #errands: Errand[] = [];
  #current: Plan | null = null;
  #loop: Promise<void> | null = null;
  #failure: OnpolicyError | null = null;
  #closed = false;
  #steps = 0;
  #promptTokens = 0;
  #generatedTokens = 0;
  #rate = 0; // tokens per second, smoothed

  constructor(backend: Backend, options: Pick<SchedulerOptions, 'maxRunning' | 'policy' | 'prefixCache'>) {
    this.#backend = backend;
    this.#maxRunning = Math.min(options.maxRunning, backend.slotCount);
    this.#scheduler = new Scheduler({
      ...options,
      slotCount: backend.slotCount,
      kvTokens: backend.kvTokens,
      batchTokens: backend.batchTokens,
      outputRows: backend.outputRows,
      rowTile: backend.rowTile,
      canCutCache: backend.canCutCache,
      sharesCells: backend.sharesCells,
    });
  }

  /** Queues a sequence. Its listener hears of every token until it says that the sequence has ended. */
  submit(sequence: Sequence, listener: Listener): void {
    if (this.#closed) throw new OnpolicyError('CLOSED', 'the model is closed');
    if (this.#failure) throw this.#failure;
    this.#listeners.set(sequence, listener);
    this.#scheduler.add(sequence);
    this.#loop ??= this.#run();
  }

  /** Takes a sequence out; its listener hears nothing more. */
  remove(sequence: Sequence): void {
    if (!this.#listeners.delete(sequence)) return;
    const entry = this.#current?.entries.find((candidate) => candidate.sequence === sequence);
    if (!this.#current) this.#scheduler.remove(sequence);
    else this.#removed.add(sequence);
    if (entry && entry.count >= CUT_STEP_AT_TOKENS) this.#backend.abortStep();
  }

  /**
   * Loads the saved cache of a prompt's beginning for the sequences of a group, between two steps. Does nothing when there
   * is no room: the prompt is then computed. Fails when the cache is of another kind of context.
   */
  adopt(group: Group, tokens: Int32Array, state: Uint8Array): Promise<void> {
    return this.#betweenSteps(async () => {
      // The last token of a prompt is computed anew: its logits are needed.
      const place = this.#scheduler.adopt(group, tokens, Math.min(tokens.length, group.prompt.length - 1));
      if (!place) return;
      try {
        await this.#backend.loadSlot(place.edits, place.slot, state);
      } catch (cause) {
        this.#scheduler.abandon(place.slot);
        throw cause;
      }
    });
  }

  /**
   * Loads a LoRA file beside the weights, while sequences run on. Returns the number by which groups name it.
   * Fails with `MODEL_INVALID` when it is no adapter of this model.
   */
  loadAdapter(path: string): Promise<number> {
    return this.#betweenSteps(() => this.#backend.loadAdapter(path));
  }

  /** Frees an adapter that no sequence uses any more. An engine that has ended has freed it already. */
  async freeAdapter(adapter: number): Promise<void> {
    if (this.#closed || this.#failure) return;
    await this.#betweenSteps(() => this.#backend.freeAdapter(adapter));
  }

  /** Shape of the cache: saved prompts can be loaded where it is the same. */
  get cacheShape(): string {
    return this.#backend.cacheShape;
  }

  /** Whether a saved prompt can be gone on from at any token. */
  get canCutCache(): boolean {
    return this.#backend.canCutCache;
  }

  /** Gives a sequence that waits the token that it goes on with. */
  advance(sequence: Sequence, token: number): void {
    sequence.append(token);
  }

  /** Starts `child`, a fork of a sequence that waits, from what is computed of its parent. Only while a listener is called. */
  fork(parent: Sequence, child: Sequence, listener: Listener): void {
    this.#listeners.set(child, listener);
    this.#scheduler.fork(parent, child);
  }

  /** Takes out a sequence that nobody will go on from: its cache is not kept. Only while a listener is called. */
  discard(sequence: Sequence): void {
    if (this.#listeners.delete(sequence)) this.#scheduler.remove(sequence, { keep: false });
  }

  /** Sequences that run at the same time at most. */
  get maxRunning(): number {
    return this.#maxRunning;
  }

  /** Numbers about this engine. */
  stats(): EngineStats {
    const { running, waiting, kvInUse, kvCached } = this.#scheduler.counts();
    return {
      running,
      waiting,
      kvTokensInUse: kvInUse,
      kvTokensCached: kvCached,
      kvTokens: this.#backend.kvTokens,
      steps: this.#steps,
      promptTokens: this.#promptTokens,
      generatedTokens: this.#generatedTokens,
      tokensPerSecond: this.#rate,
    };
  }

  /** Ends everything that runs and frees the backend. */
  async close(): Promise<void> {
    if (!this.#closed) {
      this.#closed = true;
      this.#backend.abortStep();
    }
    await this.#loop;
    await this.#backend.close();
  }

  async #run(): Promise<void> {
    await null; // requests of the same tick start in the same step
    try {
      while (!this.#closed && this.#failure === null) {
        for (let errand = this.#errands.shift(); errand; errand = this.#errands.shift()) await errand.run();
        const plan = this.#scheduler.next();
        if (!plan) break;
        await this.#step(plan);
      }
    } finally {
      this.#loop = null;
      if (!this.#closed) this.#backend.abortStep(); // nobody will ask for what was begun of a next one
    }
    const end = this.#closed ? new OnpolicyError('CLOSED', 'the model was closed') : this.#failure;
    if (end) this.#failAll(end);
    else if (this.#scheduler.counts().waiting > 0 || this.#errands.length > 0) this.#loop = this.#run(); // came while the loop was ending
  }

  async #step(plan: Plan): Promise<void> {
    const startMs = performance.now();
    this.#current = plan;
    try {
      const result = await this.#backend.step(toStep(plan));
      this.#scheduler.commit(plan);
      await this.#savePrompts(plan);
      this.#current = null;
      this.#count(plan, result, performance.now() - startMs);
      this.#deliver(plan, result);
    } catch (cause) {
      this.#current = null;
      this.#recover(plan, cause);
    }
    for (const sequence of this.#removed) this.#scheduler.remove(sequence);
    this.#removed.clear();
  }

  /** Runs `work` as soon as no step runs. */
  async #betweenSteps<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closed) throw new OnpolicyError('CLOSED', 'the model is closed');
    if (this.#failure) throw this.#failure;
    const done = new Promise<T>((resolve, reject) =>
      this.#errands.push({ run: () => work().then(resolve, reject), reject }),
    );
    this.#loop ??= this.#run();
    return await done;
  }

  /** Saves prompts that this step has completed, before their sequences go on. */
  async #savePrompts(plan: Plan): Promise<void> {
    for (const { sequence, samples } of plan.entries) {
      const { savedPrompt } = sequence;
      if (!savedPrompt || savedPrompt.state || !samples.includes(sequence) || sequence.outputCount > 0)
        continue;
      try {
        savedPrompt.state = await this.#backend.saveSlot(sequence.slot);
      } catch (cause) {
        this.#fail(sequence, fromNative(cause));
      }
    }
  }

  #deliver(plan: Plan, { samples, scores }: StepResult): void {
    let score = 0;
    for (const entry of plan.entries) {
      const { sequence } = entry;
      const rows = scoredRows(entry);
      if (rows > 0 && !sequence.promptScores!.push(scores, score, score + rows))
        this.#fail(sequence, rowError(ROW_STATUS.NOT_NUMBERS, null));
      score += rows;
    }
    let row = 0;
    for (const entry of plan.entries)
      for (const sequence of entry.samples) {
        this.#accept(sequence, samples, row);
        row += 1;
      }
  }

  #accept(sequence: Sequence, rows: SampledRows, row: number): void {
    const listener = this.#listeners.get(sequence);
    if (!listener) return; // removed while the step ran
    const status = rows.status[row]!;
    if (status === ROW_STATUS.COMPLETE) {
      this.#end(sequence);
      return listener.onComplete();
    }
    if (status !== ROW_STATUS.SAMPLED) return this.#fail(sequence, rowError(status, sequence.hook));
    if (listener.onCandidates) {
      sequence.isWaiting = true;
      return listener.onCandidates(rows, row);
    }
    const forced = forcedTokens(rows, row);
    const isFinal = rows.isFinal[row] === 1;
    const take = (token: number, isLast: boolean): boolean => {
      sequence.append(token);
      return listener.onToken(token, rows, row, isLast && isFinal);
    };
    let hasEnded = take(rows.tokens[row]!, forced.length === 0);
    for (let i = 0; i < forced.length && !hasEnded; i++) hasEnded = take(forced[i]!, i === forced.length - 1);
    if (hasEnded) this.#end(sequence);
  }

  #end(sequence: Sequence): void {
    this.#listeners.delete(sequence);
    this.#scheduler.remove(sequence);
  }

  #fail(sequence: Sequence, error: OnpolicyError): void {
    const listener = this.#listeners.get(sequence);
    this.#end(sequence);
    listener?.onError(error);
  }

  /** An aborted or full step is planned again; any other failure ends the engine. */
  #recover(plan: Plan, cause: unknown): void {
    const code = (cause as { code?: string }).code;
    if (code === 'ABORTED' || code === 'KV_FULL')
      this.#scheduler.rollback(plan, { makeRoom: code === 'KV_FULL' });
    else if (!this.#closed) this.#failure = fromNative(cause);
  }

  #failAll(error: OnpolicyError): void {
    for (const { reject } of this.#errands.splice(0)) reject(error);
    const listeners = [...this.#listeners];
    for (const [sequence] of listeners) this.#end(sequence);
    for (const [, listener] of listeners) listener.onError(error);
  }

  #count(plan: Plan, { samples }: StepResult, elapsedMs: number): void {
    let sampled = samples.forced?.ids.length ?? 0;
    for (const { start, sequence, count, samples: takers } of plan.entries) {
      this.#promptTokens += Math.max(0, Math.min(sequence.group.prompt.length, start + count) - start);
      sampled += takers.length;
    }
    this.#steps += 1;
    this.#generatedTokens += sampled;
    this.#rate += 0.1 * ((1000 * sampled) / Math.max(elapsedMs, 1e-3) - this.#rate);
  }
}

/** What a constraint forces after the token of a row. */
function forcedTokens({ forced }: SampledRows, row: number): Int32Array {
  return forced ? forced.ids.subarray(forced.offsets[row], forced.offsets[row + 1]) : NO_TOKENS;
}

/** Why no token was sampled from a row. */
function rowError(status: number, hook: LogitsHook | null): OnpolicyError {
  if (hook?.error) return hook.error;
  if (status === ROW_STATUS.NO_TOKEN_ALLOWED)
    return new OnpolicyError('NO_ALLOWED_TOKEN', 'the constraints of this request left no token to sample');
  return hook
    ? new OnpolicyError('INVALID_REQUEST', 'logits_processors: the edited logits hold NaN', {
        param: 'logits_processors',
      })
    : new OnpolicyError('BACKEND_FAILED', 'the model produced logits that are not numbers');
}
