/** Requests -> sampled tokens: submit, abort, close and the step loop. Read this first, then follow the imports. */
import type { Backend, RowEdit, Step, StepResult } from './backends/backend.ts';
import { fromNative, OnpolicyError } from './errors.ts';
import type { SampledRows } from './native.ts';
import type { LogitsHook } from './sampling/logits-hook.ts';
import { type Entry, type Plan, Scheduler, type SchedulerOptions } from './scheduler.ts';
import type { Sequence } from './sequence.ts';

/** Who hears of a sequence's tokens. Called between steps; must not throw. */
export type Listener = {
  /** A token was sampled: `row` of `rows`. Returns true when the sequence has ended. */
  onToken(token: number, rows: SampledRows, row: number): boolean;
  /** The grammar of the sequence is complete and nothing may follow: it has ended without a further token. */
  onComplete(): void;
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

/** Row status: see {@link SampledRows}. */
const STATUS_COMPLETE = 4;

/** An abort cuts a running step short only when it wastes at least this many prompt tokens. */
const CUT_STEP_AT_TOKENS = 32;

/** Runs the sequences of one model. */
export class Engine {
  readonly #backend: Backend;
  readonly #scheduler: Scheduler;
  readonly #listeners = new Map<Sequence, Listener>();
  readonly #removed = new Set<Sequence>(); // to be taken out when the running step ends
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
    this.#scheduler = new Scheduler({
      ...options,
      slotCount: backend.slotCount,
      kvTokens: backend.kvTokens,
      batchTokens: backend.batchTokens,
      outputRows: backend.outputRows,
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
        const plan = this.#scheduler.next();
        if (!plan) break;
        await this.#step(plan);
      }
    } finally {
      this.#loop = null;
    }
    const end = this.#closed ? new OnpolicyError('CLOSED', 'the model was closed') : this.#failure;
    if (end) this.#failAll(end);
    else if (this.#scheduler.counts().waiting > 0) this.#loop = this.#run(); // came while the loop was ending
  }

  async #step(plan: Plan): Promise<void> {
    const startMs = performance.now();
    this.#current = plan;
    try {
      const result = await this.#backend.step(toStep(plan));
      this.#current = null;
      this.#scheduler.commit(plan);
      this.#count(plan, performance.now() - startMs);
      this.#deliver(plan, result);
    } catch (cause) {
      this.#current = null;
      this.#recover(plan, cause);
    }
    for (const sequence of this.#removed) this.#scheduler.remove(sequence);
    this.#removed.clear();
  }

  #deliver(plan: Plan, { samples, scores }: StepResult): void {
    let score = 0;
    for (const entry of plan.entries) {
      const { sequence } = entry;
      const rows = scoredRows(entry);
      if (rows > 0 && !sequence.promptScores!.push(scores, score, score + rows))
        this.#fail(sequence, rowError(2, false));
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
    if (rows.status[row] === STATUS_COMPLETE) {
      this.#end(sequence);
      return listener.onComplete();
    }
    if (rows.status[row] !== 0)
      return this.#fail(
        sequence,
        sequence.hook?.error ?? rowError(rows.status[row]!, sequence.hook !== null),
      );
    const token = rows.tokens[row]!;
    sequence.append(token);
    if (listener.onToken(token, rows, row)) this.#end(sequence);
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
    const listeners = [...this.#listeners];
    for (const [sequence] of listeners) this.#end(sequence);
    for (const [, listener] of listeners) listener.onError(error);
  }

  #count(plan: Plan, elapsedMs: number): void {
    let sampled = 0;
    for (const { start, sequence, count, samples } of plan.entries) {
      this.#promptTokens += Math.max(0, Math.min(sequence.group.prompt.length, start + count) - start);
      sampled += samples.length;
    }
    this.#steps += 1;
    this.#generatedTokens += sampled;
    this.#rate += 0.1 * ((1000 * sampled) / Math.max(elapsedMs, 1e-3) - this.#rate);
  }
}

/** Lays a plan out in the arrays that the backend takes. */
function toStep({ entries, edits }: Plan): Step {
  const total = entries.reduce((tokens, entry) => tokens + entry.count, 0);
  const sampled = entries.flatMap((entry) => entry.samples);
  const step = {
    memoryEdits: Int32Array.from(edits),
    tokens: new Int32Array(total),
    positions: new Int32Array(total),
    sequences: new Int32Array(total),
    sampleRows: new Int32Array(sampled.length),
    rowEdits: [] as RowEdit[],
    samplers: sampled.map((sequence) => sequence.sampler),
    ...(sampled.some(({ matcher }) => matcher) ? { matchers: sampled.map(({ matcher }) => matcher) } : {}),
    scoreRows: new Int32Array(3 * entries.reduce((rows, entry) => rows + scoredRows(entry), 0)),
  };
  let at = 0;
  let row = 0;
  let scored = 0;
  for (const entry of entries) {
    const { sequence, start, count, samples: takers } = entry;
    if (scoredRows(entry) > 0) {
      const rows = sequence.promptScores!.layOut(start, start + count, at);
      step.scoreRows.set(rows, scored);
      scored += rows.length;
    }
    step.tokens.set(sequence.tokens(start, start + count), at);
    step.sequences.fill(sequence.slot, at, at + count);
    for (let i = 0; i < count; i++) step.positions[at + i] = start + i;
    at += count;
    for (const sequence of takers) {
      if (sequence.hook) step.rowEdits.push(toRowEdit(sequence, sequence.hook, row));
      step.sampleRows[row++] = at - 1;
    }
  }
  return step;
}

function toRowEdit(sequence: Sequence, hook: LogitsHook, sample: number): RowEdit {
  return { sample, row: () => hook.row(), edit: () => hook.edit(sequence.outputs()) };
}

function scoredRows({ sequence, start, count }: Entry): number {
  return sequence.promptScores?.rowsIn(start, start + count) ?? 0;
}

function rowError(status: number, isEdited: boolean): OnpolicyError {
  if (status === 2 && isEdited)
    return new OnpolicyError('INVALID_REQUEST', 'logits_processors: the edited logits hold NaN', {
      param: 'logits_processors',
    });
  return status === 1
    ? new OnpolicyError('NO_ALLOWED_TOKEN', 'the constraints of this request left no token to sample')
    : new OnpolicyError('BACKEND_FAILED', 'the model produced logits that are not numbers');
}
