/**
 * Waiting and running sequences -> the next step. Pure, synchronous, integers only: it decides what runs and which
 * cache edits that needs, and never touches a tensor.
 */
import { MEMORY_COPY, MEMORY_REMOVE } from './backends/backend.ts';
import { KvLedger } from './kv-ledger.ts';
import { PrefixCache } from './prefix-cache.ts';
import type { Group, Sequence } from './sequence.ts';

/** Limits and policy of one scheduler. */
export type SchedulerOptions = {
  readonly slotCount: number;
  readonly kvTokens: number;
  readonly batchTokens: number;
  /** Rows of logits in one step at most: at least one for each that runs. */
  readonly outputRows: number;
  /** Sequences that run at the same time. */
  readonly maxRunning: number;
  readonly policy: 'fcfs' | 'priority';
  readonly prefixCache: boolean;
  readonly canCutCache: boolean;
  readonly sharesCells: boolean;
};

/** A copied prefix is worth its copy from this length on. */
const MIN_COPIED_TOKENS = 16;

/** Some tokens of one sequence in a step, and who samples from the last of them. */
export type Entry = {
  readonly sequence: Sequence;
  readonly start: number;
  readonly count: number;
  /** The sequence itself once its last token is in, and siblings that fork from a finished prompt. */
  readonly samples: readonly Sequence[];
};

/** What runs next: sequences of one adapter. */
export type Plan = {
  readonly adapter: number;
  readonly entries: readonly Entry[];
  /** (edits, 5), as the backend takes them. */
  readonly edits: readonly number[];
};

/** How many of a sequence's tokens a step can take that has this much left. */
function nextChunk(sequence: Sequence, budget: number, scoreRows: number): number {
  const count = Math.min(sequence.length - sequence.computed, budget);
  return sequence.promptScores?.limit(sequence.computed, count, scoreRows) ?? count;
}

/** Decides which tokens run next. */
export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #ledger: KvLedger;
  readonly #cache = new PrefixCache();
  readonly #waiting: Sequence[] = []; // in order
  readonly #running: Sequence[] = []; // in order
  readonly #bySlot: (Sequence | undefined)[]; // (slots) the running sequence of each
  readonly #freeSlots = new Set<number>();
  readonly #finished = new Set<number>(); // slots kept for their prefix, least recently used first
  readonly #lastTurns = new Map<number, number>(); // by adapter in play: when it last had a step
  #turn = 0;
  #blocked: Sequence | null = null; // it found no room when its adapter had a turn: nothing behind it starts before it
  #edits: number[] = []; // for the next step

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#ledger = new KvLedger(options.kvTokens, options.slotCount, options.sharesCells);
    this.#bySlot = new Array<Sequence | undefined>(options.slotCount);
    for (let slot = 0; slot < options.slotCount; slot++) this.#freeSlots.add(slot);
  }

  /** Sequences and cells, for statistics. */
  counts(): { running: number; waiting: number; kvInUse: number; kvCached: number } {
    const kvInUse = this.#ledger.usedBy(this.#running.map((sequence) => sequence.slot));
    return {
      running: this.#running.length,
      waiting: this.#waiting.length,
      kvInUse,
      kvCached: this.#ledger.used - kvInUse,
    };
  }

  /** Queues a sequence. */
  add(sequence: Sequence): void {
    this.#insertInOrder(this.#waiting, sequence);
  }

  /** Adds a copy of a sequence that waits for its next token. Without a free slot it is computed anew. */
  fork(parent: Sequence, child: Sequence): void {
    const hasRoom = parent.slot >= 0 && this.#running.length < this.#options.maxRunning;
    const slot = hasRoom ? this.#pickSlot(-1) : -1;
    if (slot < 0) return this.add(child);
    this.#take(slot);
    child.slot = slot;
    this.#edit(MEMORY_COPY, parent.slot, slot, 0, -1);
    this.#ledger.share(parent.slot, slot, parent.computed);
    this.#start(child, parent.computed);
    this.#insertInOrder(this.#running, child);
  }

  /**
   * Makes room for a cache that is loaded from elsewhere, of which the first `kept` tokens will be used by the sequences
   * of a group. Returns its slot and what must be done before the load, or null when there is no room.
   */
  adopt(group: Group, tokens: Int32Array, kept: number): { slot: number; edits: Int32Array } | null {
    while (this.#ledger.free < tokens.length && this.#evict(-1));
    const slot = this.#ledger.free >= tokens.length ? this.#pickSlot(-1) : -1;
    if (slot < 0) return null;
    this.#take(slot);
    this.#ledger.append(slot, tokens.length);
    this.#cache.insert(this.#cacheKey(group), slot, tokens.subarray(0, kept));
    this.#finished.add(slot);
    const edits = Int32Array.from(this.#edits);
    this.#edits = [];
    this.#cut(slot, kept);
    return { slot, edits };
  }

  /** Frees a slot whose load has failed. */
  abandon(slot: number): void {
    this.#release(slot);
  }

  /** Takes a sequence out, whatever it was doing. `keep`: its computed tokens stay cached for others. */
  remove(sequence: Sequence, { keep } = { keep: true }): void {
    const waiting = this.#waiting.indexOf(sequence);
    if (waiting >= 0) this.#waiting.splice(waiting, 1);
    if (this.#blocked === sequence) this.#blocked = null;
    const running = this.#running.indexOf(sequence);
    if (running >= 0) {
      this.#running.splice(running, 1);
      if (keep) this.#retire(sequence);
      else this.#discard(sequence);
    }
  }

  /** Picks the tokens of the next step, or null when nothing can run. Adapters take turns. */
  next(): Plan | null {
    for (;;) {
      for (const adapter of this.#adaptersByTurn()) {
        const plan = this.#nextOf(adapter);
        if (!plan) continue;
        this.#lastTurns.set(adapter, ++this.#turn);
        return plan;
      }
      if (this.#running.length === 0) return null;
      // Nothing fits: the last in order makes room. A sequence alone always fits, so this ends.
      this.#preempt(this.#running.at(-1)!);
    }
  }

  /** Adapters that sequences run or wait for, the one whose turn is longest ago first. */
  #adaptersByTurn(): number[] {
    const inPlay = new Set<number>();
    for (const { group } of this.#running) inPlay.add(group.adapter);
    for (const { group } of this.#waiting) inPlay.add(group.adapter);
    for (const adapter of this.#lastTurns.keys()) if (!inPlay.has(adapter)) this.#lastTurns.delete(adapter);
    const lastTurn = (adapter: number): number => this.#lastTurns.get(adapter) ?? 0;
    return [...inPlay].sort((a, b) => lastTurn(a) - lastTurn(b));
  }

  /** The next step of one adapter, or null when none of its sequences can go on now. */
  #nextOf(adapter: number): Plan | null {
    const entries: Entry[] = [];
    let budget = this.#options.batchTokens;
    // Each that runs, or may start in this step, samples from one row at most; the rest may score prompts.
    const samplers = Math.min(this.#options.maxRunning, this.#running.length + this.#waiting.length);
    let scoreRows = this.#options.outputRows - samplers;
    const schedule = (sequence: Sequence, count: number): void => {
      const start = sequence.computed;
      this.#ledger.append(sequence.slot, count);
      budget -= count;
      scoreRows -= sequence.promptScores?.rowsIn(start, start + count) ?? 0;
      const samples = start + count === sequence.length ? [sequence, ...this.#fork(sequence)] : [];
      entries.push({ sequence, start, count, samples });
    };

    const preempted = this.#scheduleDecodes(adapter, schedule);
    for (const sequence of [...this.#running]) {
      if (sequence.group.adapter !== adapter || sequence.slot < 0 || this.#isScheduled(sequence)) continue;
      const wanted = nextChunk(sequence, budget, scoreRows);
      while (this.#ledger.free < wanted && this.#evict(-1));
      const count = Math.min(wanted, this.#ledger.free);
      if (count > 0) schedule(sequence, count);
    }
    if (!preempted) this.#admit(adapter, (sequence) => nextChunk(sequence, budget, scoreRows), schedule);
    if (entries.length === 0) return null;
    const edits = this.#edits;
    this.#edits = [];
    const plan = entries
      .map((entry) => ({ ...entry, samples: entry.samples.filter(({ slot }) => slot >= 0) }))
      .sort((a, b) => a.sequence.slot - b.sequence.slot); // neighbours side by side
    for (const { sequence, samples } of plan)
      for (const fork of samples)
        if (fork !== sequence) this.#edit(MEMORY_COPY, sequence.slot, fork.slot, 0, -1); // before the step after this
    return { adapter, entries: plan, edits };
  }

  /** Records that a plan was computed. */
  commit(plan: Plan): void {
    for (const { sequence, start, count, samples } of plan.entries) {
      sequence.computed = start + count;
      for (const fork of samples) fork.computed = start + count;
    }
  }

  /** Undoes a plan that was not computed, or only in part: its tokens will be scheduled again. */
  rollback(plan: Plan, { makeRoom }: { makeRoom: boolean }): void {
    this.#edits = []; // only forks of this plan stood here, and they go back to the queue
    for (const { sequence, samples } of plan.entries) {
      for (const fork of samples) if (fork !== sequence) this.#preempt(fork);
      if (this.#options.canCutCache) this.#cut(sequence.slot, sequence.computed);
      else this.#preempt(sequence);
    }
    if (makeRoom && !this.#evict(-1) && this.#running.length > 1) this.#preempt(this.#running.at(-1)!);
  }

  /** Whether the step that is being put together has tokens of this sequence already. */
  #isScheduled(sequence: Sequence): boolean {
    return this.#ledger.lengthOf(sequence.slot) > sequence.computed;
  }

  /** One token for every sequence of the adapter that only waits for its next one. Returns whether one had to make room. */
  #scheduleDecodes(adapter: number, schedule: (sequence: Sequence, count: number) => void): boolean {
    let preempted = false;
    for (let i = 0; i < this.#running.length; i++) {
      const sequence = this.#running[i]!;
      if (sequence.group.adapter !== adapter) continue;
      if (sequence.length - sequence.computed !== 1 || this.#isScheduled(sequence)) continue;
      while (this.#ledger.free < 1 && sequence.slot >= 0) {
        if (this.#evict(-1)) continue;
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
    for (let i = 0; i < this.#waiting.length; ) {
      if (this.#running.length >= this.#options.maxRunning) return;
      const sequence = this.#waiting[i]!;
      const isOther = sequence.group.adapter !== adapter;
      if (isOther && sequence === this.#blocked) return;
      if (isOther || sequence.isWaiting) {
        i += 1; // not its turn; or it lost its slot, and has no use for one until it gets its next token
        continue;
      }
      if (chunk(sequence) === 0) return;
      const found = this.#findPrefix(sequence);
      if (found === 'soon') {
        i += 1; // another sequence is computing what this one can share
        continue;
      }
      if (!this.#place(sequence, found)) {
        this.#blocked = sequence;
        return;
      }
      if (this.#blocked === sequence) this.#blocked = null;
      this.#waiting.splice(this.#waiting.indexOf(sequence), 1);
      this.#insertInOrder(this.#running, sequence);
      schedule(sequence, chunk(sequence));
    }
  }

  /** The slot with most of a sequence's tokens computed; `soon` when a running one is about to have more. */
  #findPrefix(sequence: Sequence): { slot: number; length: number } | 'soon' | null {
    if (!this.#options.canCutCache) return null;
    const match = this.#cache.find(
      this.#cacheKey(sequence.group),
      sequence.tokens(0, sequence.reusableCount),
    );
    if (!match) return null;
    let best: { slot: number; length: number } | null = null;
    for (const slot of match.slots) {
      const computed = this.#bySlot[slot]?.computed ?? match.length;
      const length = Math.min(match.length, computed);
      if (!best || length > best.length) best = { slot, length };
    }
    if (best!.length < match.length) return 'soon';
    return best!.length >= (this.#options.sharesCells ? 1 : MIN_COPIED_TOKENS) ? best : null;
  }

  /** Gives a sequence a slot and room for all its tokens, sharing a prefix when there is one. */
  #place(sequence: Sequence, prefix: { slot: number; length: number } | null): boolean {
    const { sharesCells } = this.#options;
    const spare = sharesCells ? this.#running.length : 0; // so that those who run need not make room at once
    const needed = sequence.length - (prefix?.length ?? 0) + spare;
    while (this.#ledger.free < needed && this.#evict(prefix?.slot ?? -1));
    const fits = this.#ledger.free >= needed;
    const slot = this.#pickSlot(prefix?.slot ?? -1);
    const isWhole =
      prefix !== null &&
      this.#finished.has(prefix.slot) &&
      prefix.length === this.#ledger.lengthOf(prefix.slot);
    if (
      prefix &&
      this.#finished.has(prefix.slot) &&
      (slot < 0 || !fits || (isWhole && (sharesCells || this.#running.length === 0)))
    ) {
      // The sequence moves into the slot whose prefix it wants: nothing else is lost, or there is no room for both.
      this.#finished.delete(prefix.slot);
      this.#cut(prefix.slot, prefix.length);
      if (this.#ledger.free < needed && this.#running.length > 0) {
        this.#release(prefix.slot);
        return false;
      }
      sequence.slot = prefix.slot;
    } else if (slot < 0 || (!fits && this.#running.length > 0)) {
      return false;
    } else {
      this.#take(slot);
      sequence.slot = slot;
      if (prefix) {
        this.#edit(MEMORY_COPY, prefix.slot, slot, 0, prefix.length);
        this.#ledger.share(prefix.slot, slot, prefix.length);
        if (this.#finished.delete(prefix.slot)) this.#finished.add(prefix.slot); // most recently used
      }
    }
    this.#start(sequence, prefix?.length ?? 0);
    this.#cache.insert(this.#cacheKey(sequence.group), sequence.slot, sequence.tokens(0, sequence.length));
    return true;
  }

  /**
   * A slot for a new sequence, or -1. With cells of their own, slots that run should be neighbours: then one beside
   * those that run is picked, even if another's prefix has to go.
   */
  #pickSlot(kept: number): number {
    if (!this.#options.sharesCells && this.#running.length > 0) {
      let beside = -1;
      for (const { slot } of this.#running)
        for (const candidate of [slot - 1, slot + 1]) {
          if (candidate === kept) continue;
          if (this.#freeSlots.has(candidate)) return candidate;
          if (this.#finished.has(candidate)) beside = candidate;
        }
      if (beside >= 0) return beside;
    }
    for (const slot of this.#freeSlots) return slot;
    for (const slot of this.#finished) if (slot !== kept) return slot;
    return -1;
  }

  /** Empties a slot that was picked and takes it out of the free ones. */
  #take(slot: number): void {
    if (this.#finished.has(slot)) this.#release(slot);
    this.#freeSlots.delete(slot);
  }

  /** Siblings that have sampled nothing yet and can start from this sequence's finished prompt at once. */
  #fork(leader: Sequence): Sequence[] {
    const forks: Sequence[] = [];
    if (leader.outputCount > 0) return forks;
    for (let i = 0; i < this.#waiting.length; ) {
      const sequence = this.#waiting[i]!;
      const isSibling = sequence.group === leader.group && sequence.outputCount === 0;
      if (!isSibling) {
        i += 1;
        continue;
      }
      const slot = this.#running.length < this.#options.maxRunning ? this.#pickSlot(-1) : -1;
      if (slot < 0) break;
      this.#take(slot);
      this.#waiting.splice(i, 1);
      sequence.slot = slot;
      this.#ledger.share(leader.slot, slot, leader.length);
      this.#start(sequence, 0);
      this.#insertInOrder(this.#running, sequence);
      forks.push(sequence);
    }
    return forks;
  }

  #start(sequence: Sequence, computed: number): void {
    this.#bySlot[sequence.slot] = sequence;
    sequence.computed = computed;
    if (sequence.cachedTokens < 0) sequence.cachedTokens = computed;
  }

  /** Sends a running sequence back to the queue; it will be computed again. */
  #preempt(sequence: Sequence): void {
    const running = this.#running.indexOf(sequence);
    if (running < 0) return;
    this.#running.splice(running, 1);
    const slot = sequence.slot;
    sequence.slot = -1;
    sequence.computed = 0;
    this.#release(slot);
    this.#insertInOrder(this.#waiting, sequence);
  }

  /** Ends a running sequence: keeps its slot for its prefix when that is worth something, else frees it. */
  #retire(sequence: Sequence): void {
    const { slot, computed } = sequence;
    sequence.slot = -1;
    this.#bySlot[slot] = undefined;
    if (!this.#options.prefixCache || !this.#options.canCutCache || computed === 0)
      return this.#release(slot);
    this.#cut(slot, computed);
    this.#cache.insert(this.#cacheKey(sequence.group), slot, sequence.tokens(0, computed));
    this.#finished.add(slot);
    for (const covered of this.#cache.coveredBy(slot))
      if (this.#finished.has(covered)) this.#release(covered);
    if (this.#cache.isCovered(slot)) this.#release(slot);
  }

  #discard(sequence: Sequence): void {
    const { slot } = sequence;
    sequence.slot = -1;
    this.#release(slot);
  }

  /** Frees the least recently used slot that is kept for its prefix; false when there is none but `kept`. */
  #evict(kept: number): boolean {
    for (const slot of this.#finished) {
      if (slot === kept) continue;
      this.#release(slot);
      return true;
    }
    return false;
  }

  #release(slot: number): void {
    this.#finished.delete(slot);
    this.#bySlot[slot] = undefined;
    this.#cache.remove(slot);
    this.#ledger.truncate(slot, 0);
    this.#edit(MEMORY_REMOVE, slot, 0, -1, -1);
    this.#freeSlots.add(slot);
  }

  #cut(slot: number, length: number): void {
    if (this.#ledger.lengthOf(slot) === length) return;
    this.#ledger.truncate(slot, length);
    this.#edit(MEMORY_REMOVE, slot, 0, length, -1);
  }

  #edit(kind: number, slot: number, target: number, from: number, to: number): void {
    this.#edits.push(kind, slot, target, from, to);
  }

  /** Without a prefix cache, sequences still share within their request. */
  #cacheKey({ adapter, cacheKey, arrival }: Group): string {
    return this.#options.prefixCache ? `${adapter} ${cacheKey}` : `request ${arrival}`;
  }

  #insertInOrder(list: Sequence[], sequence: Sequence): void {
    let low = 0;
    let high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#compare(list[middle]!, sequence) <= 0) low = middle + 1;
      else high = middle;
    }
    list.splice(low, 0, sequence);
  }

  #compare(a: Sequence, b: Sequence): number {
    const byPriority = this.#options.policy === 'priority' ? a.group.priority - b.group.priority : 0;
    return byPriority || a.group.arrival - b.group.arrival || a.index - b.index;
  }
}
