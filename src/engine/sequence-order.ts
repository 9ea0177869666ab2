/** Lists of sequences in the order in which they get their turn: insertion, removal and search. */
import type { Sequence } from './sequence.ts';

/** What the order depends on. */
export type QueuePosition = Pick<Sequence, 'group' | 'index' | 'order'>;

/** Whether a sequence is of the background. */
export function isBackground({ group }: Pick<QueuePosition, 'group'>): boolean {
  return group.background ?? false;
}

/** The foreground before the background; then by priority, fairness, arrival and number of the choice. */
export class SequenceOrder {
  readonly #byPriority: boolean;

  constructor(byPriority: boolean) {
    this.#byPriority = byPriority;
  }

  insert(list: Sequence[], sequence: Sequence): void {
    list.splice(this.place(list, sequence, true), 0, sequence);
  }

  /** Removes a sequence from a list. Returns false if it is not there. */
  take(list: Sequence[], sequence: Sequence): boolean {
    const index = list.indexOf(sequence, this.place(list, sequence));
    if (index < 0) return false;
    list.splice(index, 1);
    return true;
  }

  /** The index of the first sequence that is not before this one, or with `isAfter` of the first that is behind it. */
  place(list: readonly Sequence[], sequence: QueuePosition, isAfter = false): number {
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

  #compare(a: QueuePosition, b: QueuePosition): number {
    const byGround = Number(isBackground(a)) - Number(isBackground(b));
    const byPriority = this.#byPriority ? a.group.priority - b.group.priority : 0;
    return (
      byGround || byPriority || a.order - b.order || a.group.arrival - b.group.arrival || a.index - b.index
    );
  }
}
