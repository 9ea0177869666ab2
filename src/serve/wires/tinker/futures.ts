/** Work that was begun -> its result, which the client asks for by an id. */
import { setTimeout as sleep } from 'node:timers/promises';
import { OnpolicyError } from '../../../errors.ts';

/** The result of a request: a JSON object, or the bytes of a message. */
export type FutureResult = object | Uint8Array<ArrayBuffer>;

/** State of a request. */
export type FutureState =
  | { readonly status: 'pending' }
  | { readonly status: 'completed'; readonly result: FutureResult }
  | { readonly status: 'failed'; readonly error: unknown };

type Entry = { readonly state: Promise<FutureState>; bytes: number; isEnded: boolean; isRead: boolean };

/** Most requests of all clients whose results are kept or still to come. */
const MOST = 8192;
/** Milliseconds that a result is kept after it was read, because its answer may be lost on the way. */
const KEPT_MS = 60_000;

/** Requests of all clients. A client finds only its own. */
export class Futures {
  readonly #entries = new Map<string, Entry>();
  /** Bytes of requests that run and of results that are kept. */
  #bytes = 0;

  /**
   * Begins work, unless the client has begun it before by this id.
   * @param room bytes of the request, and the most of all requests and results
   * @throws OnpolicyError `OVERLOADED` if too much is under way
   */
  begin(
    id: string,
    owner: string,
    work: () => Promise<FutureResult>,
    room: { readonly bytes: number; readonly most: number } = { bytes: 0, most: Number.POSITIVE_INFINITY },
  ): void {
    const key = keyOf(id, owner);
    if (this.#entries.has(key)) return;
    this.#makeRoom(room);
    const state = work().then(
      (result): FutureState => ({ status: 'completed', result }),
      (error: unknown): FutureState => ({ status: 'failed', error }),
    );
    const entry: Entry = { state, bytes: room.bytes, isEnded: false, isRead: false };
    this.#entries.set(key, entry);
    this.#bytes += entry.bytes;
    void state.then((ended) => {
      entry.isEnded = true;
      const kept =
        ended.status === 'completed' && ended.result instanceof Uint8Array ? ended.result.length : 0;
      this.#bytes += kept - entry.bytes;
      entry.bytes = kept;
    });
  }

  /** Returns the state, or `pending` after this time. @throws OnpolicyError `NOT_FOUND`, and the reason of the signal */
  async read(id: string, owner: string, waitMs: number, signal?: AbortSignal): Promise<FutureState> {
    const key = keyOf(id, owner);
    const entry = this.#entries.get(key);
    if (!entry)
      throw new OnpolicyError('NOT_FOUND', `there is no request ${JSON.stringify(id.slice(0, 200))}`);
    const ended = new AbortController();
    const signals = [ended.signal, ...(signal ? [signal] : [])];
    const late = sleep(waitMs, { status: 'pending' } as const, { signal: AbortSignal.any(signals) });
    late.catch(() => {}); // the result came first
    const state = await Promise.race([entry.state, late]).finally(() => ended.abort());
    if (state.status !== 'pending' && !entry.isRead) {
      entry.isRead = true;
      setTimeout(() => this.#drop(key, entry), KEPT_MS).unref();
    }
    return state;
  }

  /** Drops the oldest results, those that were read first. */
  #makeRoom({ bytes, most }: { readonly bytes: number; readonly most: number }): void {
    const isFull = (): boolean => this.#entries.size >= MOST || this.#bytes + bytes > most;
    for (const wanted of ['isRead', 'isEnded'] as const)
      for (const [key, entry] of this.#entries) {
        if (!isFull()) return;
        if (entry[wanted]) this.#drop(key, entry);
      }
    if (isFull() && this.#entries.size > 0)
      throw new OnpolicyError('OVERLOADED', 'too many requests have no result yet');
  }

  #drop(key: string, entry: Entry): void {
    if (this.#entries.get(key) !== entry) return;
    this.#entries.delete(key);
    this.#bytes -= entry.bytes;
  }
}

function keyOf(id: string, owner: string): string {
  return JSON.stringify([owner, id]);
}
