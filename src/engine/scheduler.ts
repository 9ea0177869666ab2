/**
 * Waiting and running sequences -> the next step. Pure, synchronous, integers only: it decides what runs, and never touches
 * a tensor.
 */
import type { BackendLimits } from '../backends/index.ts';
import { FairOrder } from './fair-order.ts';
import { type Entry, isDecoding, NO_DRAFTS, nextChunk, type Plan, tokensIn } from './plan.ts';
import type { Group, Sequence } from './sequence.ts';
import { isBackground, SequenceOrder } from './sequence-order.ts';
import type { PrefixPolicy, SlotLimits } from './slot-cells.ts';
import { Slots } from './slots.ts';

/** What a scheduler depends on of its backend. */
export type SchedulerLimits = SlotLimits & Pick<BackendLimits, 'batchTokens' | 'outputRows' | 'rowTile'>;

/** What a scheduler is asked to do. */
export type SchedulerPolicy = PrefixPolicy & {
  /** Sequences that run at the same time at most. */
  readonly maxRunning: number;
  readonly policy: 'fcfs' | 'priority';
};

/** Decides which tokens run next. */
export class Scheduler {
  readonly #limits: SchedulerLimits;
  readonly #policy: SchedulerPolicy;
  /** The cells of sequences. */
  readonly slots: Slots;
  /** Whether what is computed cannot be taken back at will. */
  readonly #hasState: boolean;
  readonly #waiting: Sequence[] = []; // in order, those of the background last
  readonly #running: Sequence[] = []; // in order, too
  readonly #inPlay = new Map<number, number>(); // adapter -> its waiting and running sequences
  readonly #lastTurns = new Map<number, number>(); // number of the last step of each adapter in play
  readonly #order: SequenceOrder;
  readonly #fair = new FairOrder();
  #turn = 0;
  #foreground = 0; // sequences that run or wait and are none of the background
  #pauses = true; // whether the background computes nothing while there are such
  #blocked: Sequence | null = null; // found no room: nothing behind it starts before it
  #isFull = false; // the backend had no room for a step, and has computed none since: nothing starts beside what runs

  constructor(limits: SchedulerLimits, policy: SchedulerPolicy) {
    this.#limits = limits;
    this.#policy = policy;
    this.slots = new Slots(limits, policy);
    this.#order = new SequenceOrder(policy.policy === 'priority');
    this.#hasState = limits.rollbackTokens !== Infinity;
  }

  /** Sequences and cells, for statistics. */
  counts(): { running: number; waiting: number; kvTokensInUse: number; kvTokensCached: number } {
    const { inUse, cached } = this.slots.cells();
    const [running, waiting] = [this.#running.length, this.#waiting.length];
    return { running, waiting, kvTokensInUse: inUse, kvTokensCached: cached };
  }

  /** Queues a sequence. */
  add(sequence: Sequence): void {
    this.#count(sequence, 1);
    this.#fair.enter(sequence, this.#waiting);
    this.#order.insert(this.#waiting, sequence);
  }

  /** Adds a copy of a sequence that awaits its next token. Without a free slot it is computed again. */
  fork(parent: Sequence, child: Sequence): void {
    this.#fair.enter(child, this.#waiting);
    const hasRoom = parent.slot >= 0 && this.#running.length < this.#policy.maxRunning;
    this.#count(child, 1);
    const isRunning = hasRoom && this.slots.startFork(parent, child);
    this.#order.insert(isRunning ? this.#running : this.#waiting, child);
  }

  /** Removes a sequence in any state. `keep`: its computed tokens are cached for others. */
  remove(sequence: Sequence, { keep } = { keep: true }): void {
    if (this.#blocked === sequence) this.#blocked = null;
    if (!this.#order.take(sequence.slot < 0 ? this.#waiting : this.#running, sequence)) return;
    this.#count(sequence, -1);
    if (sequence.slot >= 0) this.slots.end(sequence, { keep });
  }

  /** Picks the tokens of the next step, or null when nothing can run. The background comes where nothing else can. */
  next(): Plan | null {
    for (;;) {
      for (this.#pauses = true; ; this.#pauses = false) {
        const plan = this.#nextByTurn();
        if (plan) return plan;
        if (!this.#pauses || this.#foreground === 0) break;
      }
      if (this.#running.length === 0) return null;
      // Nothing fits: the last in order makes room. A sequence alone always fits, so this ends.
      this.#preempt(this.#running.at(-1)!);
    }
  }

  /** Adapters take turns. */
  #nextByTurn(): Plan | null {
    for (const adapter of this.#adaptersByTurn()) {
      const plan = this.#nextOf(adapter);
      if (!plan) continue;
      this.#lastTurns.set(adapter, ++this.#turn);
      return plan;
    }
    return null;
  }

  /** Adapters of running and waiting sequences, the one whose turn is longest ago first. */
  #adaptersByTurn(): number[] {
    for (const adapter of this.#lastTurns.keys())
      if (!this.#inPlay.has(adapter)) this.#lastTurns.delete(adapter);
    const lastTurn = (adapter: number): number => this.#lastTurns.get(adapter) ?? 0;
    return [...this.#inPlay.keys()].sort((a, b) => lastTurn(a) - lastTurn(b));
  }

  #count(sequence: Sequence, change: 1 | -1): void {
    const { adapter } = sequence.group;
    if (!isBackground(sequence)) this.#foreground += change;
    const count = (this.#inPlay.get(adapter) ?? 0) + change;
    if (count > 0) this.#inPlay.set(adapter, count);
    else this.#inPlay.delete(adapter);
  }

  /** Makes room for a client that has nothing running where another has several. */
  #share(adapter: number): void {
    const starved = this.#fair.starved(this.#waiting, this.#running);
    if (!starved || starved.group.adapter !== adapter || this.#isPaused(starved)) return;
    const isFull = (): boolean =>
      this.#running.length >= this.#policy.maxRunning ||
      !this.slots.makeRoom(starved.length + this.#running.length);
    while (isFull()) {
      if (this.#yieldTo(starved)) continue;
      const candidates = this.#running.filter(
        ({ group }) => this.#policy.policy === 'fcfs' || group.priority >= starved.group.priority,
      );
      const victim = this.#fair.victim(this.#running, candidates);
      if (!victim) return;
      this.#preempt(victim);
      this.#order.take(this.#waiting, victim);
      this.#fair.yield(victim);
      this.#order.insert(this.#waiting, victim);
    }
  }

  /** Whether a sequence computes nothing for now: it is of the background, and there are others. */
  #isPaused(sequence: Sequence): boolean {
    return this.#pauses && this.#foreground > 0 && isBackground(sequence);
  }

  /** The last running sequence of the background makes room for one that is not. False: there is none. */
  #yieldTo(sequence: Sequence): boolean {
    if (!this.#canYieldTo(sequence)) return false;
    this.#preempt(this.#running.at(-1)!);
    return true;
  }

  #canYieldTo(sequence: Sequence): boolean {
    const last = this.#running.at(-1);
    return !isBackground(sequence) && last !== undefined && isBackground(last);
  }

  /** Paused sequences give up prompts that are computed in part: nobody should wait for their prefixes. False: there are none. */
  #dropPausedPrompts(): boolean {
    const dropped = this.#running.filter((sequence) => this.#isPaused(sequence) && !isDecoding(sequence));
    for (const sequence of dropped) this.#preempt(sequence);
    return dropped.length > 0;
  }

  /** The next step of one adapter, or null when none of its sequences can run now. */
  #nextOf(adapter: number): Plan | null {
    this.#share(adapter);
    const entries: Entry[] = [];
    let budget = this.#limits.batchTokens;
    // Each sequence that runs or may start here samples from one row at most. The other rows may score prompts.
    const samplers = Math.min(this.#policy.maxRunning, this.#running.length + this.#waiting.length);
    let scoreRows = this.#limits.outputRows - samplers;
    const schedule = (sequence: Sequence, count: number): void => {
      const start = sequence.computed;
      this.slots.append(sequence, count);
      budget -= count;
      scoreRows -= sequence.promptScores?.rowsIn(start, start + count) ?? 0;
      const samples = start + count === sequence.length ? [sequence, ...this.#startSiblings(sequence)] : [];
      entries.push({ sequence, start, count, samples, drafts: NO_DRAFTS });
    };

    let surplus = this.#surplusRows(adapter);
    const preempted = this.#scheduleDecodes(adapter, () => budget, schedule);
    for (const sequence of [...this.#running]) {
      if (sequence.group.adapter !== adapter || sequence.slot < 0 || this.#isPaused(sequence)) continue;
      if (this.slots.hasUncomputed(sequence)) continue;
      let wanted = nextChunk(sequence, budget, scoreRows);
      if (surplus > 0 && isDecoding(sequence)) {
        const later = Math.min(surplus, Math.max(0, wanted - 1));
        wanted -= later;
        surplus -= later;
      }
      this.slots.makeRoom(wanted);
      const count = Math.min(wanted, this.slots.freeCells);
      const isCut = count < wanted && sequence.layout?.isWholeAt(sequence.computed);
      if (count > 0 && !isCut) schedule(sequence, count);
    }
    if (!preempted) this.#admit(adapter, (sequence) => nextChunk(sequence, budget, scoreRows), schedule);
    if (entries.length === 0) return null;
    const plan = entries
      .map((entry) => ({ ...entry, samples: entry.samples.filter(({ slot }) => slot >= 0) }))
      .map((entry) => {
        const drafts = this.#chooseDrafts(entry, Math.min(budget, scoreRows));
        budget -= drafts.length;
        scoreRows -= drafts.length;
        return drafts.length > 0 ? { ...entry, drafts } : entry;
      })
      // Neighbours side by side; with recurrent state those with as many tokens, which are computed in one pass.
      .sort((a, b) => (this.#hasState ? tokensIn(a) - tokensIn(b) : 0) || a.sequence.slot - b.sequence.slot);
    const hasWindow = this.#limits.windowTokens > 0; // of what a step accepted some may be cut after the next has taken cells
    const isSteady =
      (this.#waiting.length === 0 || this.#isPaused(this.#waiting[0]!)) &&
      plan.length === this.#running.filter((sequence) => !this.#isPaused(sequence)).length &&
      plan.every(({ samples, drafts }) => samples.length === 1 && !(hasWindow && drafts.length > 0)) &&
      (!this.#hasState || this.slots.makeRoom(plan.length)); // what cannot be taken back needs its cells
    const edits = this.slots.takeEdits();
    for (const { sequence, samples } of plan)
      for (const fork of samples) if (fork !== sequence) this.slots.copyCells(sequence, fork); // in the step after this one
    return { adapter, entries: plan, edits, isSteady };
  }

  /** Records that a plan was computed; `isAhead`: and the tokens that its rows sampled. */
  commit(plan: Plan, isAhead = false): void {
    this.#isFull = false;
    for (const { sequence, start, count, samples, drafts } of plan.entries) {
      sequence.computed = start + count;
      for (const fork of samples) fork.computed = start + count;
      if (isAhead) this.slots.runAhead(sequence);
      if (drafts.length > 0) sequence.speculation!.check(drafts.length);
    }
  }

  /** Cuts the drafts of a plan that were not sampled, after the tokens of its sequences were appended. */
  cutDrafts(plan: Plan): void {
    for (const { sequence, drafts } of plan.entries)
      if (drafts.length > 0 && sequence.slot >= 0) this.slots.truncate(sequence.slot, sequence.computed);
  }

  /**
   * Undoes a plan that was computed in part or not at all: its tokens will be scheduled again. With `makeRoom` beside fewer others;
   * returns the sequence that has no room although it is alone, else null.
   */
  rollback(plan: Plan, { makeRoom }: { makeRoom: boolean }): Sequence | null {
    this.slots.takeEdits(); // only copies for forks of this plan, which return to the queue
    for (const { sequence, samples } of plan.entries) {
      for (const fork of samples) if (fork !== sequence) this.#preempt(fork, true);
      if (this.slots.canCut(sequence.slot, sequence.computed)) this.slots.rewind(sequence);
      else this.#preempt(sequence, true);
    }
    if (!makeRoom) return null;
    this.#isFull = true;
    if (this.slots.evict()) return null;
    const only = plan.entries.length === 1 ? plan.entries[0]!.sequence : null;
    if (this.#running.every((sequence) => sequence === only)) return only;
    this.#preempt(this.#running.at(-1)!);
    return null;
  }

  /** Drafts of an entry that fit into what the step has left, and into the cache. */
  #chooseDrafts({ sequence, samples }: Entry, left: number): Int32Array {
    const { speculation, slot } = sequence;
    if (!speculation || slot < 0 || samples.length !== 1) return NO_DRAFTS;
    const wanted = speculation.wanted(Math.min(left, sequence.outputsLeft - 1));
    if (wanted.length === 0) return NO_DRAFTS;
    const room = this.slots.roomBehind(sequence, wanted.length);
    if (room <= 0) return NO_DRAFTS;
    this.slots.append(sequence, Math.min(room, wanted.length));
    return wanted.subarray(0, room);
  }

  /**
   * Forced tokens that the next step should leave to a later one: rows of a step are computed in tiles, and a tile that is
   * filled in part takes about as long as a full one.
   */
  #surplusRows(adapter: number): number {
    let rows = 0;
    let sequences = 0;
    for (const sequence of this.#running) {
      if (
        sequence.group.adapter !== adapter ||
        this.#isPaused(sequence) ||
        !isDecoding(sequence) ||
        sequence.length === sequence.computed
      )
        continue;
      rows += sequence.length - sequence.computed;
      sequences += 1;
    }
    const surplus = rows % this.#limits.rowTile;
    return rows - surplus >= sequences ? surplus : 0;
  }

  /** Schedules one token of every sequence of the adapter that has only its last one to compute. Returns whether one was preempted. */
  #scheduleDecodes(
    adapter: number,
    budget: () => number,
    schedule: (sequence: Sequence, count: number) => void,
  ): boolean {
    let preempted = false;
    for (let i = 0; i < this.#running.length; i++) {
      const sequence = this.#running[i]!;
      if (sequence.group.adapter !== adapter || this.#isPaused(sequence)) continue;
      if (budget() === 0) break; // others have taken the places of sequences of the background that still run
      if (sequence.length - sequence.computed !== 1 || this.slots.hasUncomputed(sequence)) continue;
      while (sequence.slot >= 0 && !sequence.isAhead && !this.slots.makeRoom(1)) {
        this.#preempt(this.#running.at(-1)!);
        preempted = true;
      }
      if (sequence.slot >= 0) schedule(sequence, 1);
    }
    return preempted;
  }

  /** Starts waiting sequences of the adapter, in order, as long as there is room. */
  #admit(
    adapter: number,
    chunk: (sequence: Sequence) => number,
    schedule: (sequence: Sequence, count: number) => void,
  ): void {
    let early: Group | null = null; // its sequences come when their prefix is computed
    const most = this.#isFull ? 1 : this.#policy.maxRunning;
    for (let i = 0; i < this.#waiting.length; ) {
      const sequence = this.#waiting[i]!;
      if (this.#isPaused(sequence)) return; // and so is all behind it
      if (this.#running.length >= most && !this.#canYieldTo(sequence)) return;
      const isOther = sequence.group.adapter !== adapter;
      if (isOther && sequence === this.#blocked) return;
      if (isOther || sequence.awaitsToken || sequence.group === early) {
        i += 1; // not its turn; or it was preempted, and needs no slot before it has its next token
        continue;
      }
      if (chunk(sequence) === 0) return;
      if (this.#running.length >= most) {
        this.#yieldTo(sequence);
        continue;
      }
      const found = this.slots.findPrefix(sequence);
      if (found === 'soon' && this.#dropPausedPrompts()) continue;
      if (found === 'soon') {
        if (sequence.outputCount === 0) early = sequence.group;
        i += 1; // another sequence is computing a prefix of this one
        continue;
      }
      if (!this.slots.start(sequence, found)) {
        if (this.#yieldTo(sequence)) continue;
        this.#blocked = sequence;
        return;
      }
      if (this.#blocked === sequence) this.#blocked = null;
      this.#order.take(this.#waiting, sequence);
      this.#order.insert(this.#running, sequence);
      this.#fair.start(sequence);
      schedule(sequence, chunk(sequence));
    }
  }

  /** Starts siblings that have sampled nothing yet from this sequence's prompt, which the coming step completes. */
  #startSiblings(leader: Sequence): Sequence[] {
    const forks: Sequence[] = [];
    if (leader.outputCount > 0) return forks;
    const { group } = leader;
    for (
      let i = this.#order.place(this.#waiting, { group, index: -1, order: this.#fair.orderOf(group) });
      ;
    ) {
      const sequence = this.#waiting[i];
      if (sequence?.group !== group) break;
      if (sequence.outputCount > 0) {
        i += 1;
        continue;
      }
      if (this.#running.length >= this.#policy.maxRunning || !this.slots.startSibling(leader, sequence))
        break;
      this.#waiting.splice(i, 1);
      this.#order.insert(this.#running, sequence);
      forks.push(sequence);
    }
    return forks;
  }

  /** Returns a running sequence to the queue; it will be computed again. `isBroken`: its cache holds a part of a step. */
  #preempt(sequence: Sequence, isBroken = false): void {
    if (!this.#order.take(this.#running, sequence)) return;
    // It is continued later from its state or from a checkpoint, if nobody needs the room.
    this.slots.end(sequence, { keep: this.#hasState && !isBroken });
    sequence.computed = 0;
    this.#order.insert(this.#waiting, sequence);
  }
}
