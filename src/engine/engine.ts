/** Requests -> sampled tokens: submit, abort, close and the step loop. Read this first, then follow the imports. */

import { pending } from '../common/index.ts';
import { fromNative, OnpolicyError } from '../errors.ts';
import type { EngineStats } from '../protocol/service/index.ts';
import type { Backend, DraftHead, HeadFile } from './backend/index.ts';
import { allocate, cachedTokens, extend, lend } from './cell-moves.ts';
import type { CellOwner } from './cells.ts';
import { isCheckpointDue, savedLength } from './checkpoint-rules.ts';
import { Delivery, type Listener } from './delivery.ts';
import { DraftControl } from './draft-control.ts';
import { StepCounter, StepTimings } from './engine-stats.ts';
import type { Plan } from './plan.ts';
import { Scheduler, type SchedulerOptions } from './scheduler.ts';
import type { Group, Sequence } from './sequence.ts';
import { KnownDrafts } from './speculation.ts';
import { recordExperts, toStep } from './step-layout.ts';

/** A running step is cut short only for at least this many tokens of an aborted sequence. */
const CUT_STEP_AT_TOKENS = 32;
const NO_EDITS = new Int32Array(0);

/** Work on the backend that must not overlap a step: it waits for the end of the running one. */
type Deferred = {
  /** Never rejects. */
  readonly run: () => Promise<void>;
  readonly reject: (cause: unknown) => void;
};

/** Runs the sequences of one model. */
export class Engine {
  /** Maximum number of sequences that run at the same time. */
  readonly maxRunning: number;
  /** Acceptance rates of the draft model, shared by the sequences. */
  readonly knownDrafts = new KnownDrafts();
  readonly #backend: Backend;
  readonly #scheduler: Scheduler;
  readonly #delivery: Delivery;
  readonly #deferred: Deferred[] = []; // in order
  readonly #counter = new StepCounter();
  readonly #drafts: DraftControl;
  readonly #timings = new StepTimings();
  readonly #removed = new Set<Sequence>(); // leave the scheduler when the running step ends
  #current: Plan | null = null;
  #loop: Promise<void> | null = null;
  #lastEndMs = 0; // of the last step
  #failure: OnpolicyError | null = null;
  #closed = false;

  constructor(backend: Backend, options: SchedulerOptions) {
    this.#backend = backend;
    this.maxRunning = Math.min(options.maxRunning, backend.slotCount, backend.batchTokens); // each takes a token of a step
    this.#scheduler = new Scheduler(backend, { ...options, maxRunning: this.maxRunning });
    this.#delivery = new Delivery(this.#scheduler);
    this.#drafts = new DraftControl(backend);
  }

  /** Queues a sequence. Its listener receives every token until it says that the sequence has ended. */
  submit(sequence: Sequence, listener: Listener): void {
    this.#checkOpen();
    sequence.times.submittedMs = performance.now();
    this.#delivery.add(sequence, listener);
    this.#scheduler.add(sequence);
    if (this.#current && !sequence.group.background && this.#canWait(this.#current))
      this.#backend.abortStep();
    this.#loop ??= this.#run();
  }

  /** Removes a sequence. Its listener is not called any more. */
  remove(sequence: Sequence): void {
    if (!this.#delivery.remove(sequence)) return;
    if (!this.#current) return this.#scheduler.remove(sequence);
    this.#removed.add(sequence);
    const entry = this.#current.entries.find((candidate) => candidate.sequence === sequence);
    // With recurrent state, an aborted step would lose the states of its other sequences.
    const isAlone = this.#current.entries.length === 1 || this.#backend.rollbackTokens === Infinity;
    if (entry && entry.count >= CUT_STEP_AT_TOKENS && isAlone) this.#backend.abortStep();
  }

  /** Starts `child`, a fork of a sequence that waits for a token, on a copy of its parent's cache. Call it from a listener. */
  fork(parent: Sequence, child: Sequence, listener: Listener): void {
    this.#delivery.add(child, listener);
    this.#scheduler.fork(parent, child);
  }

  /** Removes a sequence without caching its prefix. Call it from a listener. */
  discard(sequence: Sequence): void {
    if (this.#delivery.remove(sequence)) this.#scheduler.remove(sequence, { keep: false });
  }

  /**
   * Loads the saved cache of a prompt's beginning for the sequences of a group, between two steps. Does nothing if there
   * is no room; the prompt is then computed. Fails if the cache is of another kind of context.
   */
  adopt(group: Group, tokens: Int32Array, state: Uint8Array): Promise<void> {
    return this.#betweenSteps(async () => {
      // The last token of a prompt is always computed: its logits are needed.
      const used = Math.min(tokens.length, group.prompt.length - 1);
      const place = allocate(this.#scheduler.cells, group, tokens, used);
      if (!place) return;
      try {
        await this.#backend.loadSlot(place.edits, place.slot, state);
      } catch (cause) {
        this.#scheduler.cells.free(place.slot);
        throw cause;
      }
    });
  }

  /** Empties the prefix cache between two steps, see {@link Scheduler.resetCache}. */
  resetCache(preempt: boolean): Promise<boolean> {
    return this.#betweenSteps(async () => this.#scheduler.resetCache(preempt));
  }

  /** True if caches are saved and loaded in pieces, at any time. Otherwise they are saved whole, at the places of {@link Group.keeper}. */
  get movesPieces(): boolean {
    return this.#scheduler.cells.spare >= 0;
  }

  /** True after a step has failed for another reason than an abort or a full cache. The engine can then compute no more steps. */
  get hasFailed(): boolean {
    return this.#failure !== null;
  }

  /** True if a step runs or sequences wait for one. */
  get isBusy(): boolean {
    return this.#current !== null || this.#scheduler.counts().waiting > 0;
  }

  /** Returns the number of leading tokens that the prefix cache has or will have soon. */
  cachedTokens(owner: CellOwner, tokens: Int32Array): number {
    return cachedTokens(this.#scheduler.cells, owner, tokens);
  }

  /** Returns the cells of `tokens` from `from` on, and the time in which no step could run. Null if the prefix cache has lost them. */
  async savePiece(
    owner: CellOwner,
    tokens: Int32Array,
    from: number,
  ): Promise<{ readonly state: Uint8Array; readonly ms: number } | null> {
    return await this.#betweenSteps(async () => {
      const startMs = performance.now();
      const lent = lend(this.#scheduler.cells, owner, tokens, from);
      if (!lent) return null;
      const state = await this.#backend.saveSlot(lent.edits, lent.slot);
      return { state, ms: performance.now() - startMs };
    });
  }

  /** Adds a saved piece to the cache of the tokens before `from`. Returns false if that cache is gone or there is no room. */
  async loadPiece(owner: CellOwner, tokens: Int32Array, from: number, state: Uint8Array): Promise<boolean> {
    return await this.#betweenSteps(async () => {
      const place = extend(this.#scheduler.cells, owner, tokens, from);
      if (!place) return false;
      try {
        await this.#backend.loadSlot(place.edits, place.slot, state);
        return true;
      } catch (cause) {
        place.undo();
        throw cause;
      }
    });
  }

  /**
   * Loads a LoRA file beside the weights, while sequences run. Returns the number by which groups name it.
   * Fails with `MODEL_INVALID` when it is no adapter of this model.
   */
  loadAdapter(path: string): Promise<number> {
    return this.#betweenSteps(() => this.#backend.loadAdapter(path));
  }

  /** Combines loaded adapters, each with a factor of its output. Returns the number by which groups refer to the mix. */
  mixAdapters(adapters: readonly number[], scales: readonly number[]): Promise<number> {
    return this.#betweenSteps(() => this.#backend.mixAdapters(adapters, scales));
  }

  /** Frees an adapter or a mix that no sequence uses any more. Does nothing if the engine has ended, which freed it. */
  async freeAdapter(adapter: number): Promise<void> {
    await this.#unlessEnded(() => this.#backend.freeAdapter(adapter));
  }

  /** Shape of the cache. Saved prompts can be loaded by an engine with the same shape. */
  get cacheShape(): string {
    return this.#backend.cacheShape;
  }

  /** The head that drafts from the model's hidden states. */
  get draftHead(): DraftHead | null {
    return this.#backend.draftHead;
  }

  /**
   * Lets a file draft for sequences from now on. Fails with `UNSUPPORTED` if it cannot, or if another head drafts. The engine ends if its
   * caches are lost.
   */
  attachHead(file: HeadFile): Promise<void> {
    return this.#betweenSteps(async () => {
      if (this.draftHead !== null)
        throw new OnpolicyError(
          'UNSUPPORTED',
          `expected a model without a head that drafts, got one with ${this.draftHead.kind === 'own' ? 'layers for multi-token prediction' : 'another file that drafts'}`,
        );
      try {
        await this.#backend.attachHead(file);
      } catch (cause) {
        const error = fromNative(cause);
        if (error.code === 'BACKEND_FAILED' && !this.#closed) this.#failure = error;
        throw cause;
      }
    });
  }

  /** Detaches the file that drafts. Does nothing if the engine has ended, which detached it. */
  async detachHead(): Promise<void> {
    await this.#unlessEnded(() => this.#backend.detachHead());
  }

  /** Number of last tokens that can be cut from a sequence's cache, see {@link BackendLimits.rollbackTokens}. */
  get rollbackTokens(): number {
    return this.#backend.rollbackTokens;
  }

  /** True if checkpoints are useful, because caches cannot be cut everywhere. */
  get takesCheckpoints(): boolean {
    return this.#backend.rollbackTokens !== Infinity || this.#backend.windowTokens > 0;
  }

  /** Maximum number of cells of one sequence, as the engine counts them: all cells if sequences share them. */
  get sequenceCells(): number {
    const { kvTokens, slotCount, isKvUnified } = this.#backend;
    return isKvUnified ? kvTokens : Math.floor(kvTokens / slotCount);
  }

  /** CPU threads of the last step. */
  get threads(): number {
    return this.#backend.threads;
  }

  /** Numbers about this engine. */
  stats(): EngineStats {
    const { kvTokens } = this.#backend;
    return { ...this.#scheduler.counts(), kvTokens, ...this.#counter, timings: this.#timings.data() };
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

  /** Returns true if a step has only background sequences and can be computed again, so that other sequences need not wait for its end. */
  #canWait({ entries }: Plan): boolean {
    return (
      this.#backend.rollbackTokens === Infinity && entries.every(({ sequence }) => sequence.group.background)
    );
  }

  #checkOpen(): void {
    if (this.#closed) throw new OnpolicyError('CLOSED', 'the model is closed');
    if (this.#failure) throw this.#failure;
  }

  /** Runs `work` between two steps. */
  async #betweenSteps<T>(work: () => Promise<T>): Promise<T> {
    this.#checkOpen();
    const { promise, resolve, reject } = pending<T>();
    this.#deferred.push({ run: () => work().then(resolve, reject), reject });
    this.#loop ??= this.#run();
    return await promise;
  }

  /** Runs `work` between two steps, or does nothing if the engine has ended, because its end does the same. */
  async #unlessEnded(work: () => Promise<void>): Promise<void> {
    const isEnded = (): boolean => this.#closed || this.#failure !== null;
    if (isEnded()) return;
    await this.#betweenSteps(work).catch((error: unknown) => {
      if (!isEnded()) throw error;
    });
  }

  async #run(): Promise<void> {
    await null; // requests of the same tick start in the same step
    this.#lastEndMs = performance.now();
    try {
      while (!this.#closed && this.#failure === null) {
        for (let next = this.#deferred.shift(); next; next = this.#deferred.shift()) {
          await next.run();
          this.#lastEndMs = performance.now();
        }
        const plan = this.#scheduler.next();
        if (!plan) break;
        await this.#step(plan);
      }
    } finally {
      this.#loop = null;
      if (!this.#closed) this.#backend.abortStep(); // ends the run-ahead step, which no step will ask for
    }
    const end = this.#closed ? new OnpolicyError('CLOSED', 'the model was closed') : this.#failure;
    if (end) {
      for (const { reject } of this.#deferred.splice(0)) reject(end);
      this.#delivery.failAll(end);
    } else if (this.#scheduler.counts().waiting > 0 || this.#deferred.length > 0) this.#loop = this.#run(); // came while the loop was ending
  }

  async #step(plan: Plan): Promise<void> {
    this.#current = plan;
    this.#drafts.plan(plan);
    try {
      const result = await this.#backend.step(toStep(plan));
      this.#scheduler.commit(plan, result.isAhead === true);
      await this.#saveCheckpoints(plan);
      await this.#savePrompts(plan);
      await this.#saveCaches(plan);
      this.#current = null;
      const endMs = performance.now();
      const startMs = this.#lastEndMs;
      const elapsedMs = endMs - startMs; // from step to step: a run-ahead step begins before it is asked for
      this.#lastEndMs = endMs;
      this.#drafts.record(plan, elapsedMs, result.drafting);
      if (result.experts) recordExperts(plan, result.experts);
      const tokens = this.#delivery.deliver(plan, result);
      this.#scheduler.cutDrafts(plan);
      this.#counter.add(plan, tokens, elapsedMs);
      this.#timings.add(plan, startMs, endMs);
    } catch (cause) {
      this.#current = null;
      this.#recover(plan, cause);
    }
    for (const sequence of this.#removed) this.#scheduler.remove(sequence);
    this.#removed.clear();
  }

  /** Takes the checkpoints that are due after this step. */
  async #saveCheckpoints(plan: Plan): Promise<void> {
    const { cells } = this.#scheduler;
    for (const { sequence } of plan.entries) {
      if (!isCheckpointDue(cells, sequence)) continue;
      const number = cells.checkpoints.begin();
      const bytes = await this.#backend.saveCheckpoint(sequence.place.slot, number);
      const tokens = sequence.tokens(0, sequence.place.computed).slice();
      if (bytes > 0) cells.keepCheckpoint(number, sequence.group, tokens, bytes);
    }
  }

  /** Passes caches to keepers at the places that they want. */
  async #saveCaches(plan: Plan): Promise<void> {
    for (const { sequence } of plan.entries) {
      const { group } = sequence;
      const { computed, slot } = sequence.place;
      if (slot < 0 || !group.keeper?.wants(computed)) continue;
      group.keeper.take(computed, await this.#backend.saveSlot(NO_EDITS, slot).catch(() => null));
    }
  }

  /** Saves prompts that this step has completed, before their sequences get further tokens. */
  async #savePrompts(plan: Plan): Promise<void> {
    for (const { sequence } of plan.entries) {
      const { savedPrompt, group } = sequence;
      const { computed, slot } = sequence.place;
      if (!savedPrompt || savedPrompt.state || slot < 0) continue;
      if (computed !== savedLength(this.#scheduler.cells, group)) continue;
      try {
        savedPrompt.tokens = computed;
        savedPrompt.state = await this.#backend.saveSlot(NO_EDITS, slot);
      } catch (cause) {
        this.#delivery.fail(sequence, fromNative(cause));
      }
    }
  }

  /** An aborted or full step is planned again; a sequence that alone is too much fails. Any other failure ends the engine. */
  #recover(plan: Plan, cause: unknown): void {
    const { code } = cause as { code?: string };
    if (code === 'ABORTED' || code === 'KV_FULL') {
      const tooLarge = this.#scheduler.rollback(plan, { makeRoom: code === 'KV_FULL' });
      if (tooLarge) this.#delivery.fail(tooLarge, fromNative(cause));
    } else if (!this.#closed) this.#failure = fromNative(cause);
  }
}
