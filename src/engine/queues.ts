/** Sequences that wait and that run -> each list in the order in which its sequences get their turn, and whose adapter's turn it is. */
import type { Group, Sequence } from './sequence.ts';

/** The fields of a sequence that determine the order. */
type QueuePosition = Pick<Sequence, 'group' | 'index'>;

/** Order of sequences: by arrival, or by priority first. */
export type Scheduling = 'fcfs' | 'priority';

/** Returns true if a sequence is a background sequence. */
export function isBackground({ group }: Pick<Sequence, 'group'>): boolean {
  return group.background ?? false;
}

/**
 * The sequences of one engine, in lists that are searched by halves. Whatever orders them must not change while a sequence is in a list, and
 * is the same for all of its group, whose sequences are neighbours. A preempted sequence waits again.
 */
export class Queues {
  readonly waiting: readonly Sequence[];
  readonly running: readonly Sequence[];
  readonly #waiting: Sequence[] = []; // in order
  readonly #running: Sequence[] = []; // in order, too
  readonly #inPlay = new Map<number, number>(); // adapter -> its waiting and running sequences
  readonly #lastTurns = new Map<number, number>(); // number of the last step of each adapter in play
  readonly #byPriority: boolean;
  #turn = 0;
  #foreground = 0;

  constructor(scheduling: Scheduling) {
    this.#byPriority = scheduling === 'priority';
    this.waiting = this.#waiting;
    this.running = this.#running;
  }

  /** True if a foreground sequence runs or waits. */
  get hasForeground(): boolean {
    return this.#foreground > 0;
  }

  /** Adds a sequence that waits, or runs already. */
  enter(sequence: Sequence, isRunning = false): void {
    this.#count(sequence, 1);
    this.#insert(isRunning ? this.#running : this.#waiting, sequence);
  }

  /** Removes a sequence. Returns false if it is in no list. */
  leave(sequence: Sequence): boolean {
    const list = sequence.place.slot < 0 ? this.#waiting : this.#running;
    if (!this.#take(list, sequence)) return false;
    this.#count(sequence, -1);
    return true;
  }

  /** Moves a sequence from those that wait to those that run. */
  start(sequence: Sequence): void {
    this.#take(this.#waiting, sequence);
    this.#insert(this.#running, sequence);
  }

  /** Moves a sequence from those that run to those that wait. Returns false if it does not run. */
  preempt(sequence: Sequence): boolean {
    if (!this.#take(this.#running, sequence)) return false;
    this.#insert(this.#waiting, sequence);
    return true;
  }

  /** Waiting sequences of a group, in order. The one that was given last may be started before the next is asked for. */
  *waitingOf(group: Group): Generator<Sequence> {
    for (let i = this.#place(this.#waiting, { group, index: -1 }); this.#waiting[i]?.group === group; ) {
      const sequence = this.#waiting[i]!;
      yield sequence;
      if (this.#waiting[i] === sequence) i += 1;
    }
  }

  /** Adapters of all sequences, the one whose turn is longest ago first. */
  adaptersByTurn(): number[] {
    for (const adapter of this.#lastTurns.keys())
      if (!this.#inPlay.has(adapter)) this.#lastTurns.delete(adapter);
    const lastTurn = (adapter: number): number => this.#lastTurns.get(adapter) ?? 0;
    return [...this.#inPlay.keys()].sort((a, b) => lastTurn(a) - lastTurn(b));
  }

  /** Records that an adapter has its turn now. */
  takeTurn(adapter: number): void {
    this.#lastTurns.set(adapter, ++this.#turn);
  }

  #count(sequence: Sequence, change: 1 | -1): void {
    const { adapter } = sequence.group;
    if (!isBackground(sequence)) this.#foreground += change;
    const count = (this.#inPlay.get(adapter) ?? 0) + change;
    if (count > 0) this.#inPlay.set(adapter, count);
    else this.#inPlay.delete(adapter);
  }

  #insert(list: Sequence[], sequence: Sequence): void {
    list.splice(this.#place(list, sequence, true), 0, sequence);
  }

  #take(list: Sequence[], sequence: Sequence): boolean {
    const index = list.indexOf(sequence, this.#place(list, sequence));
    if (index < 0) return false;
    list.splice(index, 1);
    return true;
  }

  /** The index of the first sequence that is not before this one, or with `isAfter` of the first that is behind it. */
  #place(list: readonly Sequence[], sequence: QueuePosition, isAfter = false): number {
    let low = 0;
    let high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const order = this.#compare(list[middle]!, sequence);
      if (order < 0 || (isAfter && order === 0)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The foreground before the background; then by priority, arrival and number of the choice. */
  #compare(a: QueuePosition, b: QueuePosition): number {
    const byGround = Number(isBackground(a)) - Number(isBackground(b));
    const byPriority = this.#byPriority ? a.group.priority - b.group.priority : 0;
    return byGround || byPriority || a.group.arrival - b.group.arrival || a.index - b.index;
  }
}
