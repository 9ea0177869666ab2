/**
 * Sequences of several clients -> an order in which each client gets its share: start-time fair queuing (Goyal, Vin, Cheng 1996) at
 * a cost of 1 a sequence. With one client it is the order of arrival.
 */
import type { Group, Sequence } from './sequence.ts';

/** Clients that are remembered beyond those in play. */
const MAX_IDLE_CLIENTS = 64;

/** Tag of a client's next sequence, and its latest arrival. */
type Client = { readonly tag: number; readonly arrival: number };

/** The order of the sequences of one engine. */
export class FairOrder {
  readonly #clients = new Map<string, Client>();
  readonly #groups = new WeakMap<Group, number>(); // choices of one request stay together
  #now = 0; // tag of the sequence that started last

  /** Gives a sequence its place among those that wait. */
  enter(sequence: Sequence, waiting: readonly Sequence[]): void {
    const { group } = sequence;
    const known = this.#clients.get(clientOf(sequence)) ?? { tag: 0, arrival: -1 };
    const next = Math.max(this.#now, known.tag);
    const isLate = group.arrival < known.arrival;
    const order = this.#groups.get(group) ?? (isLate ? earlierOrder(sequence, waiting) : null) ?? next;
    this.#groups.set(group, order);
    this.#clients.set(clientOf(sequence), { tag: next + 1, arrival: Math.max(group.arrival, known.arrival) });
    sequence.order = order;
    if (this.#clients.size > MAX_IDLE_CLIENTS) this.#forget();
  }

  /** The place of a request whose sequences have entered. */
  orderOf(group: Group): number {
    return this.#groups.get(group)!;
  }

  /** A sequence starts. */
  start({ order }: Sequence): void {
    this.#now = Math.max(this.#now, order);
  }

  /** Puts a sequence that makes room for another client behind what that client waits with. */
  yield(sequence: Sequence): void {
    sequence.order = this.#now + 1;
  }

  /**
   * Who should make room: of the client with most running sequences, if these are two at least, the last. `candidates`: those that
   * may, in order. Null: everyone has its share.
   */
  victim(running: readonly Sequence[], candidates: readonly Sequence[]): Sequence | null {
    const counts = new Map<string, number>();
    for (const sequence of running) counts.set(clientOf(sequence), (counts.get(clientOf(sequence)) ?? 0) + 1);
    let best: Sequence | null = null;
    for (const sequence of candidates) {
      const count = counts.get(clientOf(sequence))!;
      if (count > 1 && (!best || count >= counts.get(clientOf(best))!)) best = sequence;
    }
    return best;
  }

  /** The first waiting sequence whose client has nothing running; null when there is none. */
  starved(waiting: readonly Sequence[], running: readonly Sequence[]): Sequence | null {
    if (this.#clients.size < 2) return null;
    const served = new Set(running.map(clientOf));
    return waiting.find((sequence) => !sequence.awaitsToken && !served.has(clientOf(sequence))) ?? null;
  }

  #forget(): void {
    for (const [client, { tag }] of this.#clients) if (tag <= this.#now) this.#clients.delete(client);
  }
}

/** The place of one whose request came before others of its client that were queued already; null: it came last. */
function earlierOrder(sequence: Sequence, waiting: readonly Sequence[]): number | null {
  const isLater = (other: Sequence | undefined): boolean =>
    other !== undefined &&
    clientOf(other) === clientOf(sequence) &&
    other.group.priority === sequence.group.priority &&
    other.group.arrival > sequence.group.arrival;
  return waiting.find(isLater)?.order ?? null;
}

function clientOf({ group }: Sequence): string {
  return group.client ?? '';
}
