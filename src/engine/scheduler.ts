/**
 * Waiting and running sequences -> the next step. Pure, synchronous, integers only: it decides what runs, and never touches
 * a tensor. Read `next` and `#planFor` first: the rules that fill a step follow in their order.
 */
import type { BackendLimits } from './backend/index.ts';
import { Cells, type PrefixPolicy, type SlotLimits } from './cells.ts';
import type { Entry, Plan } from './plan.ts';
import { isBackground, Queues, type Scheduling } from './queues.ts';
import type { Group, Sequence } from './sequence.ts';
import { Slots } from './slots.ts';
import { StepBuilder } from './step-builder.ts';
import { addDrafts } from './step-drafts.ts';

/** The limits of the backend that a scheduler depends on. */
export type SchedulerLimits = SlotLimits & Pick<BackendLimits, 'batchTokens' | 'outputRows' | 'rowTile'>;

/** Settings of a scheduler. */
export type SchedulerOptions = PrefixPolicy & {
  /** Maximum number of sequences that run at the same time. */
  readonly maxRunning: number;
  readonly scheduling: Scheduling;
};

/** Decides which tokens run next. */
export class Scheduler {
  readonly #limits: SchedulerLimits;
  readonly #maxRunning: number;
  readonly #queues: Queues;
  /** The slots of the KV cache. */
  readonly cells: Cells;
  /** The slots as sequences use them. */
  readonly slots: Slots;
  #blocked: Sequence | null = null; // found no room; sequences after it must not start before it
  #isFull = false; // the backend had no room for a step, and has computed none since: nothing starts beside what runs

  constructor(limits: SchedulerLimits, options: SchedulerOptions) {
    this.#limits = limits;
    this.#maxRunning = options.maxRunning;
    this.#queues = new Queues(options.scheduling);
    this.cells = new Cells(limits, options);
    this.slots = new Slots(this.cells);
  }

  /** Sequences and cells, for statistics. */
  counts(): { running: number; waiting: number; kvTokensInUse: number; kvTokensCached: number } {
    const { inUse, cached } = this.cells.usage();
    const { running, waiting } = this.#queues;
    return {
      running: running.length,
      waiting: waiting.length,
      kvTokensInUse: inUse,
      kvTokensCached: cached,
    };
  }

  /** Queues a sequence. */
  add(sequence: Sequence): void {
    this.#queues.enter(sequence);
  }

  /** Adds a copy of a sequence that awaits its next token. Without a free slot it is computed again. */
  fork(parent: Sequence, child: Sequence): void {
    const hasRoom = parent.place.slot >= 0 && this.#queues.running.length < this.#maxRunning;
    this.#queues.enter(child, hasRoom && this.slots.startFork(parent, child));
  }

  /** Removes a sequence in any state. `keep`: its computed tokens are cached for others. */
  remove(sequence: Sequence, { keep } = { keep: true }): void {
    if (this.#blocked === sequence) this.#blocked = null;
    if (this.#queues.leave(sequence) && sequence.place.slot >= 0) this.slots.end(sequence, { keep });
  }

  /**
   * Frees all cached cells. Returns false, and frees none, while sequences hold cells. With `preempt` these give them up, and are computed
   * again.
   */
  resetCache(preempt: boolean): boolean {
    const { running } = this.#queues;
    if (running.length > 0 && !preempt) return false;
    while (running.length > 0) this.#preempt(running.at(-1)!);
    while (this.cells.evict());
    return true;
  }

  /** Picks the tokens of the next step, or null when nothing can run. */
  next(): Plan | null {
    const { running, hasForeground } = this.#queues;
    for (;;) {
      // Background sequences compute only if no foreground sequence can.
      const plan = this.#planByTurn(hasForeground) ?? (hasForeground ? this.#planByTurn(false) : null);
      if (plan || running.length === 0) return plan;
      // If nothing fits, the last sequence in order is preempted. A single sequence always fits, so this loop ends.
      this.#preempt(running.at(-1)!);
    }
  }

  /** Adapters take turns, because a step computes with one of them. */
  #planByTurn(pausesBackground: boolean): Plan | null {
    for (const adapter of this.#queues.adaptersByTurn()) {
      const plan = this.#planFor(adapter, pausesBackground);
      if (!plan) continue;
      this.#queues.takeTurn(adapter);
      return plan;
    }
    return null;
  }

  /** The next step of one adapter, or null when none of its sequences can run now. */
  #planFor(adapter: number, pausesBackground: boolean): Plan | null {
    const { batchTokens, outputRows } = this.#limits;
    const { running, waiting } = this.#queues;
    // Each sequence that runs or may start here samples from one row at most. The other rows may score prompts.
    const samplers = Math.min(this.#maxRunning, running.length + waiting.length);
    const step = new StepBuilder(adapter, pausesBackground, batchTokens, outputRows - samplers);
    this.#fillTiles(step);
    this.#addDecodes(step);
    this.#continuePrompts(step);
    this.#admit(step);
    return step.entries.length > 0 ? this.#finish(step) : null;
  }

  /**
   * Rule 1: a step computes forced tokens in whole tiles of rows and leaves the rest to a later one, because a tile that is filled in part
   * takes about as long as a full one.
   */
  #fillTiles(step: StepBuilder): void {
    let rows = 0;
    let sequences = 0;
    for (const sequence of this.#queues.running) {
      const left = sequence.length - sequence.place.computed;
      if (!step.isOpenTo(sequence) || !sequence.isDecoding || left === 0) continue;
      rows += left;
      sequences += 1;
    }
    const surplus = rows % this.#limits.rowTile;
    step.surplus = rows - surplus >= sequences ? surplus : 0;
  }

  /**
   * Rule 2: every sequence that has only its last token to compute gets it, so that no answer waits for a prompt. If cells run out, the last
   * in order makes room.
   */
  #addDecodes(step: StepBuilder): void {
    const { running } = this.#queues;
    for (let i = 0; i < running.length; i++) {
      const sequence = running[i]!;
      const { place } = sequence;
      if (!step.isOpenTo(sequence)) continue;
      if (step.tokens === 0) return; // others have taken the places of sequences of the background that still run
      if (sequence.length - place.computed !== 1 || this.slots.hasUncomputed(sequence)) continue;
      while (place.slot >= 0 && !place.isAhead && !this.cells.makeRoom(1)) {
        this.#preempt(running.at(-1)!);
        step.hasPreempted = true;
      }
      if (place.slot >= 0) this.#schedule(step, sequence, 1);
    }
  }

  /** Rule 3: running sequences with more tokens to compute continue in order, so that the first answers begin soonest. */
  #continuePrompts(step: StepBuilder): void {
    for (const sequence of [...this.#queues.running]) {
      if (sequence.place.slot < 0 || !step.isOpenTo(sequence) || this.slots.hasUncomputed(sequence)) continue;
      let wanted = step.chunkOf(sequence);
      if (sequence.isDecoding) {
        const later = Math.min(step.surplus, Math.max(0, wanted - 1));
        wanted -= later;
        step.surplus -= later;
      }
      this.cells.makeRoom(wanted);
      const count = Math.min(wanted, this.cells.freeCells);
      const isCut = count < wanted && sequence.layout?.isWholeAt(sequence.place.computed); // a medium that must be computed as a whole
      if (count > 0 && !isCut) this.#schedule(step, sequence, count);
    }
  }

  /**
   * Rule 4: waiting sequences start in order while there is room. One that finds none blocks those behind it in order, so that they do not
   * overtake it for ever.
   */
  #admit(step: StepBuilder): void {
    if (step.hasPreempted) return;
    const { waiting, running } = this.#queues;
    const most = this.#isFull ? 1 : this.#maxRunning;
    let early: Group | null = null; // its sequences come when their prefix is computed
    for (let i = 0; i < waiting.length; ) {
      const sequence = waiting[i]!;
      if (step.isPaused(sequence)) return; // and so is all behind it
      if (running.length >= most && !this.#canYieldTo(sequence)) return;
      const isOther = sequence.group.adapter !== step.adapter;
      if (isOther && sequence === this.#blocked) return;
      if (isOther || sequence.awaitsToken || sequence.group === early) {
        i += 1; // not its turn; or it was preempted, and needs no slot before it has its next token
        continue;
      }
      if (step.chunkOf(sequence) === 0) return;
      if (running.length >= most) {
        this.#preempt(running.at(-1)!); // of the background
        continue;
      }
      const outcome = this.#start(step, sequence);
      if (outcome === 'no room') return;
      if (outcome !== 'later') continue; // another sequence is the i-th now, or it is tried again
      if (sequence.outputCount === 0) early = sequence.group;
      i += 1;
    }
  }

  /**
   * Starts a waiting sequence on the longest prefix in the cache. `later`: another sequence is computing a longer prefix of it, which
   * costs less than to compute it twice. `again`: others have made room.
   */
  #start(step: StepBuilder, sequence: Sequence): 'started' | 'later' | 'again' | 'no room' {
    const prefix = this.slots.findPrefix(sequence);
    if (prefix === 'soon') return this.#dropPausedPrompts(step) ? 'again' : 'later';
    if (!this.slots.start(sequence, prefix)) {
      const canYield = this.#canYieldTo(sequence);
      if (canYield) this.#preempt(this.#queues.running.at(-1)!);
      else this.#blocked = sequence;
      return canYield ? 'again' : 'no room';
    }
    if (this.#blocked === sequence) this.#blocked = null;
    this.#queues.start(sequence);
    this.#schedule(step, sequence, step.chunkOf(sequence));
    return 'started';
  }

  /** Rule 5: drafts fill what is left of the step, because rows that nothing else needs cost little. Then the plan is complete. */
  #finish(step: StepBuilder): Plan {
    const { adapter, tokens, scoreRows } = step;
    const whole = step.entries.map(withoutPreempted);
    const entries = addDrafts(whole, Math.min(tokens, scoreRows), this.slots, this.#limits);
    const isSteady = this.#isSteady(step, entries);
    const edits = this.cells.takeEdits();
    for (const { sequence, samples } of entries)
      for (const fork of samples)
        if (fork !== sequence) this.cells.copy(sequence.place.slot, fork.place.slot); // in the step after this one
    return { adapter, entries, edits, isSteady };
  }

  /** Returns true if the step after this one can be predicted: the same sequences decode one token each. */
  #isSteady(step: StepBuilder, entries: Plan['entries']): boolean {
    const { running, waiting } = this.#queues;
    const hasWindow = this.#limits.windowTokens > 0; // of what a step accepted some may be cut after the next has taken cells
    return (
      (waiting.length === 0 || step.isPaused(waiting[0]!)) &&
      entries.length === running.filter((sequence) => !step.isPaused(sequence)).length &&
      entries.every(({ samples, drafts }) => samples.length === 1 && !(hasWindow && drafts.length > 0)) &&
      (!this.cells.hasState || this.cells.makeRoom(entries.length)) // what cannot be taken back needs its cells
    );
  }

  /** Records that a plan was computed, and if `isAhead` also the tokens that its rows sampled. */
  commit(plan: Plan, isAhead = false): void {
    this.#isFull = false;
    for (const { sequence, start, count, samples, drafts } of plan.entries) {
      this.slots.advance(sequence, start + count);
      for (const fork of samples) this.slots.advance(fork, start + count);
      if (isAhead) this.slots.runAhead(sequence);
      if (drafts.length > 0) sequence.speculation!.check(drafts.length);
    }
  }

  /** Cuts the drafts of a plan that were not sampled, after the tokens of its sequences were appended. */
  cutDrafts(plan: Plan): void {
    for (const { sequence, drafts } of plan.entries) {
      const { slot, computed } = sequence.place;
      if (drafts.length > 0 && slot >= 0) this.cells.truncate(slot, computed);
    }
  }

  /**
   * Undoes a plan that was computed in part or not at all: its tokens will be scheduled again. With `makeRoom` beside fewer others;
   * returns the sequence that has no room although it is alone, else null.
   */
  rollback(plan: Plan, { makeRoom }: { makeRoom: boolean }): Sequence | null {
    this.cells.takeEdits(); // only copies for forks of this plan, which return to the queue
    for (const { sequence, samples } of plan.entries) {
      for (const fork of samples) if (fork !== sequence) this.#preempt(fork, true);
      if (!this.slots.rewind(sequence)) this.#preempt(sequence, true);
    }
    if (!makeRoom) return null;
    this.#isFull = true;
    if (this.cells.evict()) return null;
    const { running } = this.#queues;
    const only = plan.entries.length === 1 ? plan.entries[0]!.sequence : null;
    if (running.every((sequence) => sequence === only)) return only;
    this.#preempt(running.at(-1)!);
    return null;
  }

  /** Adds the next tokens of a running sequence to a step. With the last one, siblings sample from the same row. */
  #schedule(step: StepBuilder, sequence: Sequence, count: number): void {
    this.slots.append(sequence, count);
    const isLast = sequence.place.computed + count === sequence.length;
    step.add(sequence, count, isLast ? [sequence, ...this.#startSiblings(sequence)] : []);
  }

  /** Starts siblings that have sampled nothing yet from this sequence's prompt, which the coming step completes. */
  #startSiblings(leader: Sequence): Sequence[] {
    const forks: Sequence[] = [];
    if (leader.outputCount > 0) return forks;
    for (const sibling of this.#queues.waitingOf(leader.group)) {
      if (sibling.outputCount > 0) continue;
      if (this.#queues.running.length >= this.#maxRunning || !this.slots.startSibling(leader, sibling)) break;
      this.#queues.start(sibling);
      forks.push(sibling);
    }
    return forks;
  }

  /** True if the last running sequence is of the background and this one is not. */
  #canYieldTo(sequence: Sequence): boolean {
    const last = this.#queues.running.at(-1);
    return !isBackground(sequence) && last !== undefined && isBackground(last);
  }

  /** Preempts paused sequences with a partly computed prompt, so that other sequences do not wait for that prefix. Returns false if there were none. */
  #dropPausedPrompts(step: StepBuilder): boolean {
    const dropped = this.#queues.running.filter(
      (sequence) => step.isPaused(sequence) && !sequence.isDecoding,
    );
    for (const sequence of dropped) this.#preempt(sequence);
    return dropped.length > 0;
  }

  /** Returns a running sequence to the queue; it will be computed again. `isBroken`: its cache holds a part of a step. */
  #preempt(sequence: Sequence, isBroken = false): void {
    if (this.#queues.preempt(sequence)) this.slots.preempt(sequence, isBroken);
  }
}

/** Leaves out sequences that were preempted after they had started. */
function withoutPreempted(entry: Entry): Entry {
  const isRunning = ({ place }: Sequence): boolean => place.slot >= 0;
  return entry.samples.every(isRunning) ? entry : { ...entry, samples: entry.samples.filter(isRunning) };
}
