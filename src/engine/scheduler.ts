/**
 * Waiting and running sequences -> the next step. Pure, synchronous, integers only: it decides what runs, and never touches
 * a tensor.
 */
import type { Group, Sequence } from './sequence.ts';
import { type SlotOptions, Slots } from './slots.ts';

/** Limits and policy of one scheduler. */
export type SchedulerOptions = SlotOptions & {
  readonly batchTokens: number;
  /** Rows of logits in one step at most: at least one for each that runs. */
  readonly outputRows: number;
  /** See {@link Backend.rowTile}. */
  readonly rowTile: number;
  /** Sequences that run at the same time. */
  readonly maxRunning: number;
  readonly policy: 'fcfs' | 'priority';
};

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
  /** Every sequence that there is samples its next token here: the next step takes those, unless one ends or comes. */
  readonly isSteady: boolean;
};

/** How many of a sequence's tokens a step can take that has this much left. */
function nextChunk(sequence: Sequence, budget: number, scoreRows: number): number {
  const count = Math.min(sequence.length - sequence.computed, budget);
  return sequence.promptScores?.limit(sequence.computed, count, scoreRows) ?? count;
}

/** Whether the prompt of a sequence is computed: its next tokens are sampled or forced ones. */
function isDecoding({ computed, group }: Sequence): boolean {
  return computed >= group.prompt.length;
}

/** Decides which tokens run next. */
export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #slots: Slots;
  readonly #waiting: Sequence[] = []; // in order
  readonly #running: Sequence[] = []; // in order
  readonly #lastTurns = new Map<number, number>(); // by adapter in play: when it last had a step
  #turn = 0;
  #blocked: Sequence | null = null; // it found no room when its adapter had a turn: nothing behind it starts before it

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#slots = new Slots(options);
  }

  /** Sequences and cells, for statistics. */
  counts(): { running: number; waiting: number; kvInUse: number; kvCached: number } {
    const { inUse, cached } = this.#slots.cells();
    return {
      running: this.#running.length,
      waiting: this.#waiting.length,
      kvInUse: inUse,
      kvCached: cached,
    };
  }

  /** Queues a sequence. */
  add(sequence: Sequence): void {
    this.#insertInOrder(this.#waiting, sequence);
  }

  /** Adds a copy of a sequence that waits for its next token. Without a free slot it is computed anew. */
  fork(parent: Sequence, child: Sequence): void {
    const hasRoom = parent.slot >= 0 && this.#running.length < this.#options.maxRunning;
    if (hasRoom && this.#slots.fork(parent, child)) this.#insertInOrder(this.#running, child);
    else this.add(child);
  }

  /** See {@link Slots.adopt}. */
  adopt(group: Group, tokens: Int32Array, kept: number): { slot: number; edits: Int32Array } | null {
    return this.#slots.adopt(group, tokens, kept);
  }

  /** Frees a slot whose load has failed. */
  abandon(slot: number): void {
    this.#slots.release(slot);
  }

  /** Takes a sequence out, whatever it was doing. `keep`: its computed tokens stay cached for others. */
  remove(sequence: Sequence, { keep } = { keep: true }): void {
    const waiting = this.#waiting.indexOf(sequence);
    if (waiting >= 0) this.#waiting.splice(waiting, 1);
    if (this.#blocked === sequence) this.#blocked = null;
    const running = this.#running.indexOf(sequence);
    if (running < 0) return;
    this.#running.splice(running, 1);
    if (keep) this.#slots.retire(sequence);
    else this.#slots.drop(sequence);
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
      this.#slots.append(sequence, count);
      budget -= count;
      scoreRows -= sequence.promptScores?.rowsIn(start, start + count) ?? 0;
      const samples = start + count === sequence.length ? [sequence, ...this.#fork(sequence)] : [];
      entries.push({ sequence, start, count, samples });
    };

    let surplus = this.#surplusRows(adapter);
    const preempted = this.#scheduleDecodes(adapter, schedule);
    for (const sequence of [...this.#running]) {
      if (sequence.group.adapter !== adapter || sequence.slot < 0 || this.#slots.hasUncomputed(sequence))
        continue;
      let wanted = nextChunk(sequence, budget, scoreRows);
      if (surplus > 0 && isDecoding(sequence)) {
        const later = Math.min(surplus, wanted - 1);
        wanted -= later;
        surplus -= later;
      }
      this.#slots.makeRoom(wanted);
      const count = Math.min(wanted, this.#slots.freeCells);
      if (count > 0) schedule(sequence, count);
    }
    if (!preempted) this.#admit(adapter, (sequence) => nextChunk(sequence, budget, scoreRows), schedule);
    if (entries.length === 0) return null;
    const edits = this.#slots.takeEdits();
    const plan = entries
      .map((entry) => ({ ...entry, samples: entry.samples.filter(({ slot }) => slot >= 0) }))
      .sort((a, b) => a.sequence.slot - b.sequence.slot); // neighbours side by side
    for (const { sequence, samples } of plan)
      for (const fork of samples) if (fork !== sequence) this.#slots.copyCells(sequence, fork); // before the step after this
    const isSteady =
      this.#options.canCutCache &&
      this.#waiting.length === 0 &&
      plan.length === this.#running.length &&
      plan.every(({ samples }) => samples.length === 1);
    return { adapter, entries: plan, edits, isSteady };
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
    this.#slots.takeEdits(); // only forks of this plan stood here, and they go back to the queue
    for (const { sequence, samples } of plan.entries) {
      for (const fork of samples) if (fork !== sequence) this.#preempt(fork);
      if (this.#options.canCutCache) this.#slots.cut(sequence.slot, sequence.computed);
      else this.#preempt(sequence);
    }
    if (makeRoom && !this.#slots.evict() && this.#running.length > 1) this.#preempt(this.#running.at(-1)!);
  }

  /**
   * Forced tokens that the next step should leave for a later one: rows of a step are computed in tiles, and some rows
   * more than whole tiles take about as long as a whole tile more.
   */
  #surplusRows(adapter: number): number {
    let rows = 0;
    let sequences = 0;
    for (const sequence of this.#running) {
      if (
        sequence.group.adapter !== adapter ||
        !isDecoding(sequence) ||
        sequence.length === sequence.computed
      )
        continue;
      rows += sequence.length - sequence.computed;
      sequences += 1;
    }
    const surplus = rows % this.#options.rowTile;
    return rows - surplus >= sequences ? surplus : 0;
  }

  /** One token for every sequence of the adapter that only waits for its next one. Returns whether one had to make room. */
  #scheduleDecodes(adapter: number, schedule: (sequence: Sequence, count: number) => void): boolean {
    let preempted = false;
    for (let i = 0; i < this.#running.length; i++) {
      const sequence = this.#running[i]!;
      if (sequence.group.adapter !== adapter) continue;
      if (sequence.length - sequence.computed !== 1 || this.#slots.hasUncomputed(sequence)) continue;
      while (sequence.slot >= 0 && !this.#slots.makeRoom(1)) {
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
      const found = this.#slots.findPrefix(sequence);
      if (found === 'soon') {
        i += 1; // another sequence is computing what this one can share
        continue;
      }
      if (!this.#slots.place(sequence, found)) {
        this.#blocked = sequence;
        return;
      }
      if (this.#blocked === sequence) this.#blocked = null;
      this.#waiting.splice(this.#waiting.indexOf(sequence), 1);
      this.#insertInOrder(this.#running, sequence);
      schedule(sequence, chunk(sequence));
    }
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
      if (this.#running.length >= this.#options.maxRunning || !this.#slots.forkPrompt(leader, sequence))
        break;
      this.#waiting.splice(i, 1);
      this.#insertInOrder(this.#running, sequence);
      forks.push(sequence);
    }
    return forks;
  }

  /** Sends a running sequence back to the queue; it will be computed again. */
  #preempt(sequence: Sequence): void {
    const running = this.#running.indexOf(sequence);
    if (running < 0) return;
    this.#running.splice(running, 1);
    this.#slots.drop(sequence);
    sequence.computed = 0;
    this.#insertInOrder(this.#waiting, sequence);
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
