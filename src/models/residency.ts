/**
 * Models that are wanted and used -> which of them are in memory. A load waits until the least recently used models make room. No model is
 * unloaded while it is used.
 */

import { LeaseScope, lease, onAbort, pending, Shared } from '../common/index.ts';
import { OnpolicyError } from '../errors.ts';
import type { Complete } from '../protocol/index.ts';
import type { ResidentState } from '../protocol/service/index.ts';
import {
  adapterError,
  type FreeBytes,
  type MemoryNeed,
  memoryError,
  type OverBudget,
  totalBytes,
} from './memory-need.ts';

/** A model that is in memory, is being loaded, or waits for memory. */
export class Resident<Value> {
  readonly name: string;
  readonly path: string;
  /** Progress of loading, 0 to 1. */
  progress = 0;
  /** Null until the header of its file is read. */
  need: MemoryNeed | null = null;
  hasRoom = false;
  /** Bytes of its loaded adapters. */
  adapterBytes = 0;
  /** Null until it is loaded. */
  value: Value | null = null;
  /** Number of requests that wait for the model or use it. */
  users = 0;
  /** Number of its last use. A higher number is a later use. */
  lastUse = 0;
  isLeaving = false;
  /** Resolves when it was unloaded or could not be loaded. */
  readonly gone: Promise<void>;
  loading!: Shared<Value>;
  timer: NodeJS.Timeout | undefined;
  onGone!: () => void;

  constructor(name: string, path: string) {
    this.name = name;
    this.path = path;
    this.gone = new Promise((resolve) => {
      this.onGone = resolve;
    });
  }

  get state(): ResidentState {
    if (this.isLeaving) return 'leaving';
    if (this.value !== null) return 'ready';
    return this.hasRoom ? 'loading' : 'waiting';
  }
}

export type ResidencyContext<Value> = Complete['MemoryOptions'] & {
  readonly freeBytes: () => FreeBytes;
  readonly unload: (value: Value) => Promise<void>;
};

/** Loads a model: calls `enter` with the model's memory need, and continues when that resolves. */
export type Load<Value> = (
  resident: Resident<Value>,
  enter: Enter<Value>,
  stop: AbortSignal,
) => Promise<Value>;

/** Takes memory. A model that is loaded `beside` another one does not wait, because the holder of the other would wait for it. */
export type Enter<Value> = (need: MemoryNeed, beside?: Beside<Value>) => Promise<void>;

type Beside<Value> = {
  readonly model: Resident<Value>;
  /** True if no model is unloaded for it; otherwise unused models are. */
  readonly onlyIfFree: boolean;
  /** Field that errors name. */
  readonly field: string;
};

type Waiter<Value> = {
  readonly resident: Resident<Value>;
  readonly need: MemoryNeed;
  readonly enter: () => void;
  readonly refuse: (error: OnpolicyError) => void;
};

export class Residency<Value> {
  readonly #context: ResidencyContext<Value>;
  readonly #residents = new Set<Resident<Value>>();
  readonly #queue: Waiter<Value>[] = []; // in order of arrival
  #uses = 0;

  constructor(context: ResidencyContext<Value>) {
    this.#context = context;
  }

  list(): ReadonlySet<Resident<Value>> {
    return this.#residents;
  }

  add(name: string, path: string, load: Load<Value>): Resident<Value> {
    const resident = new Resident<Value>(name, path);
    this.#residents.add(resident);
    resident.loading = new Shared(async (stop) => {
      try {
        const enter: Enter<Value> = (need, beside) =>
          beside ? this.#enterBeside(resident, need, beside) : this.#enter(resident, need, stop);
        resident.value = await load(resident, enter, stop);
      } catch (error) {
        this.#remove(resident);
        throw error;
      }
      resident.progress = 1;
      if (resident.users === 0) this.#idle(resident, null);
      this.#makeRoom(); // its memory is now taken, no longer reserved
      return resident.value;
    });
    return resident;
  }

  /**
   * Returns the model as soon as it is loaded. It is in use until the result is disposed of, and then stays for `keepMs`; Infinity keeps
   * it, null applies the runtime's option.
   */
  async use(
    resident: Resident<Value>,
    signal: AbortSignal | undefined,
    keepMs: number | null,
  ): Promise<Disposable & { readonly value: Value }> {
    using scope = new LeaseScope();
    resident.users += 1;
    resident.lastUse = ++this.#uses;
    clearTimeout(resident.timer);
    const end = (): void => {
      resident.users -= 1;
      if (resident.users === 0 && resident.value !== null) this.#idle(resident, keepMs);
    };
    scope.add(lease(end));
    return scope.handOver({ value: await resident.loading.wait(signal) });
  }

  /**
   * Takes memory for an adapter beside a model that is in use, and unloads unused models for it. Does not wait for others: fails with
   * `OUT_OF_MEMORY`.
   */
  async reserve(
    resident: Resident<Value>,
    bytes: number,
    { isOnDevice, name }: { readonly isOnDevice: boolean; readonly name: string },
  ): Promise<Disposable> {
    const need = {
      weights: bytes,
      cache: 0,
      compute: 0,
      checkpoints: 0,
      host: isOnDevice ? 0 : bytes,
      device: isOnDevice ? bytes : 0,
    };
    const take = (): void => {
      resident.adapterBytes += bytes;
    };
    await this.#takeBeside(need, { model: resident, onlyIfFree: false }, take, (free, over) =>
      adapterError(name, need, free, over),
    );
    return lease(() => {
      resident.adapterBytes -= bytes;
    });
  }

  async #enterBeside(resident: Resident<Value>, need: MemoryNeed, beside: Beside<Value>): Promise<void> {
    resident.need = need;
    const take = (): void => {
      resident.hasRoom = true;
    };
    await this.#takeBeside(need, beside, take, (free, over) =>
      memoryError(resident.name, beside.field, need, free, over),
    );
  }

  /** Takes memory at once, or after unloading unused models. */
  async #takeBeside(
    need: MemoryNeed,
    { model, onlyIfFree }: Pick<Beside<Value>, 'model' | 'onlyIfFree'>,
    take: () => void,
    toError: (free: FreeBytes, over: OverBudget | null) => OnpolicyError,
  ): Promise<void> {
    for (;;) {
      const holders = [...this.#residents].filter(({ hasRoom }) => hasRoom);
      const free = this.#context.freeBytes();
      const isWanted = onlyIfFree && this.#queue.length > 0;
      if (!isWanted && this.#fits(need, holders, free)) return take();
      const idle = holders.filter((one) => one !== model && one.value !== null && one.users === 0);
      const [oldest] = idle.sort((a, b) => a.lastUse - b.lastUse);
      if (onlyIfFree || !oldest) throw toError(free, this.#overBudget(need, holders));
      await this.leave(oldest);
    }
  }

  /** Unloads a model when nothing uses it any more. Resolves when it is unloaded. */
  async leave(resident: Resident<Value>): Promise<void> {
    clearTimeout(resident.timer);
    const wasLeaving = resident.isLeaving;
    resident.isLeaving = true;
    if (!wasLeaving && resident.users === 0 && resident.value !== null) this.#unload(resident);
    await resident.gone;
  }

  /** Rejects all waiting loads, and unloads every model, used or not. */
  async close(): Promise<void> {
    const closed = new OnpolicyError('CLOSED', 'the runtime is closed');
    for (const { refuse } of this.#queue.splice(0)) refuse(closed);
    const end = async (resident: Resident<Value>): Promise<void> => {
      const value = await resident.loading.result.catch(() => null); // its users receive the error
      clearTimeout(resident.timer);
      if (value === null || (resident.isLeaving && resident.users === 0)) return await resident.gone;
      this.#residents.delete(resident);
      await this.#context.unload(value);
      resident.onGone();
    };
    await Promise.all([...this.#residents].map(end));
  }

  async #enter(resident: Resident<Value>, need: MemoryNeed, stop: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = pending<void>();
    resident.need = need;
    const waiter: Waiter<Value> = { resident, need, enter: resolve, refuse: reject };
    this.#queue.push(waiter);
    using _stopping = onAbort(stop, () => {
      const place = this.#queue.indexOf(waiter);
      if (place < 0) return; // it already has room
      this.#queue.splice(place, 1);
      reject(new OnpolicyError('ABORTED', `loading ${resident.name} was aborted`));
      this.#makeRoom();
    });
    this.#makeRoom();
    await promise;
  }

  /** Admits waiting loads in order. If the first does not fit, unloads the least recently used model. */
  #makeRoom(): void {
    for (let head = this.#queue[0]; head; head = this.#queue[0]) {
      const holders = [...this.#residents].filter(({ hasRoom }) => hasRoom);
      const free = this.#context.freeBytes();
      if (this.#fits(head.need, holders, free)) {
        this.#queue.shift();
        head.resident.hasRoom = true;
        head.enter();
        continue;
      }
      if (!this.#fits(head.need, [], afterAll(holders, free))) {
        this.#queue.shift();
        head.refuse(
          memoryError(head.resident.name, 'model', head.need, free, this.#overBudget(head.need, [])),
        );
        continue;
      }
      if (holders.some(({ isLeaving }) => isLeaving)) return; // called again when that one is unloaded
      const ready = holders.filter(({ value }) => value !== null);
      const idle = ready.filter(({ users }) => users === 0);
      const [oldest] = (idle.length > 0 ? idle : ready).sort((a, b) => a.lastUse - b.lastUse);
      if (oldest) void this.leave(oldest);
      return;
    }
  }

  #fits(need: MemoryNeed, holders: readonly Resident<Value>[], free: FreeBytes): boolean {
    if (this.#overBudget(need, holders)) return false;
    const coming = holders.filter(({ value }) => value === null).map((holder) => holder.need!);
    const host = coming.reduce((sum, one) => sum + one.host, need.host);
    const device = coming.reduce((sum, one) => sum + one.device, need.device);
    return host <= free.host && device <= free.device;
  }

  /** Returns the budget if a model beside these exceeds it, else null. */
  #overBudget(need: MemoryNeed, holders: readonly Resident<Value>[]): OverBudget | null {
    const { budget } = this.#context;
    const held = holders.reduce((sum, one) => sum + totalBytes(one.need!) + one.adapterBytes, 0);
    return budget !== null && held + totalBytes(need) > budget ? { budget, held } : null;
  }

  #idle(resident: Resident<Value>, keepMs: number | null): void {
    if (resident.isLeaving) return this.#unload(resident);
    const ms = keepMs ?? this.#context.idleMs;
    if (ms === 0) return void this.leave(resident);
    if (ms !== null && Number.isFinite(ms))
      resident.timer = setTimeout(() => void this.leave(resident), Math.min(ms, MAX_TIMER_MS)).unref();
    this.#makeRoom();
  }

  #unload(resident: Resident<Value>): void {
    resident.isLeaving = true;
    // A model that fails to free counts as unloaded, too.
    void this.#context
      .unload(resident.value!)
      .catch(() => {})
      .finally(() => this.#remove(resident));
  }

  #remove(resident: Resident<Value>): void {
    this.#residents.delete(resident);
    resident.onGone();
    this.#makeRoom();
  }
}

/** Longest delay of a timer. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Returns the memory that would be free without any of these models. */
function afterAll(holders: readonly Resident<unknown>[], free: FreeBytes): FreeBytes {
  const loaded = holders.filter(({ value }) => value !== null).map(({ need }) => need!);
  return {
    host: loaded.reduce((sum, { host }) => sum + host, free.host),
    device: loaded.reduce((sum, { device }) => sum + device, free.device),
  };
}
