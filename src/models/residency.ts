/**
 * Models that are wanted and used -> which of them are in memory. A load waits for room, which the least recently used models
 * make; none is freed while it is used.
 */
import { LeaseScope, lease, Shared } from '../common/index.ts';
import { OnpolicyError } from '../errors.ts';
import type { Complete } from '../protocol/index.ts';
import { adapterError, type FreeBytes, type MemoryNeed, memoryError, totalBytes } from './memory-need.ts';

/** State of a model: it waits for memory, is being loaded, is ready, or is unloaded after its last request. */
export type ResidentState = 'waiting' | 'loading' | 'ready' | 'leaving';

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
  /** Number of requests that wait for it or use it. */
  users = 0;
  /** Number of its last use: higher is later. */
  lastUse = 0;
  isLeaving = false;
  /** Resolves when it has left, or could not be loaded. */
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

/** What a residency works with. */
export type ResidencyContext<Value> = Complete['MemoryOptions'] & {
  readonly freeBytes: () => FreeBytes;
  readonly unload: (value: Value) => Promise<void>;
};

/** Loads a model: calls `enter` when it knows what the model needs, and goes on when there is room. */
export type Load<Value> = (
  resident: Resident<Value>,
  enter: (need: MemoryNeed) => Promise<void>,
  stop: AbortSignal,
) => Promise<Value>;

type Waiter<Value> = {
  readonly resident: Resident<Value>;
  readonly need: MemoryNeed;
  readonly enter: () => void;
  readonly refuse: (error: OnpolicyError) => void;
};

/** The models of one runtime. */
export class Residency<Value> {
  readonly #context: ResidencyContext<Value>;
  readonly #residents = new Set<Resident<Value>>();
  readonly #queue: Waiter<Value>[] = []; // in order
  #uses = 0;

  constructor(context: ResidencyContext<Value>) {
    this.#context = context;
  }

  /** Every model that is in memory or wants to be. */
  list(): ReadonlySet<Resident<Value>> {
    return this.#residents;
  }

  /** Begins to load a model. */
  add(name: string, path: string, load: Load<Value>): Resident<Value> {
    const resident = new Resident<Value>(name, path);
    this.#residents.add(resident);
    resident.loading = new Shared(async (stop) => {
      try {
        resident.value = await load(resident, (need) => this.#enter(resident, need, stop), stop);
      } catch (error) {
        this.#remove(resident);
        throw error;
      }
      resident.progress = 1;
      if (resident.users === 0) this.#idle(resident, null);
      this.#makeRoom(); // its bytes are no longer expected, but taken
      return resident.value;
    });
    return resident;
  }

  /**
   * The model as soon as it is loaded. It is in use until this is disposed of, and then stays for `keepMs`, for good when
   * that is infinite; null: as the options say.
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
   * Takes memory for an adapter beside a model that is in use; models that nothing uses leave for it. Does not wait for others:
   * fails with `OUT_OF_MEMORY`.
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
    for (;;) {
      const holders = [...this.#residents].filter(({ hasRoom }) => hasRoom);
      const free = this.#context.freeBytes();
      if (this.#fits(need, holders, free)) {
        resident.adapterBytes += bytes;
        return lease(() => {
          resident.adapterBytes -= bytes;
        });
      }
      const idle = holders.filter((one) => one !== resident && one.value !== null && one.users === 0);
      const [oldest] = idle.sort((a, b) => a.lastUse - b.lastUse);
      if (!oldest) throw adapterError(name, need, free, this.#context.budget, this.#heldBytes(holders));
      await this.leave(oldest);
    }
  }

  /** Fails with `OUT_OF_MEMORY` where a model would wait for room, or others leave for it. */
  requireFree(name: string, need: MemoryNeed): void {
    const holders = [...this.#residents].filter(({ hasRoom }) => hasRoom);
    const free = this.#context.freeBytes();
    if (this.#queue.length > 0 || !this.#fits(need, holders, free))
      throw memoryError(name, need, free, this.#overBudget(need));
  }

  /** Unloads a model when nothing uses it any more. Resolves when it has left. */
  async leave(resident: Resident<Value>): Promise<void> {
    clearTimeout(resident.timer);
    const wasLeaving = resident.isLeaving;
    resident.isLeaving = true;
    if (!wasLeaving && resident.users === 0 && resident.value !== null) this.#unload(resident);
    await resident.gone;
  }

  /** Ends all waiting, and unloads every model, used or not. */
  async close(): Promise<void> {
    const closed = new OnpolicyError('CLOSED', 'the runtime is closed');
    for (const { refuse } of this.#queue.splice(0)) refuse(closed);
    const end = async (resident: Resident<Value>): Promise<void> => {
      const value = await resident.loading.result.catch(() => null); // its users hear of the failure
      clearTimeout(resident.timer);
      if (value === null || (resident.isLeaving && resident.users === 0)) return await resident.gone;
      this.#residents.delete(resident);
      await this.#context.unload(value);
      resident.onGone();
    };
    await Promise.all([...this.#residents].map(end));
  }

  /** Waits for room, in order. */
  #enter(resident: Resident<Value>, need: MemoryNeed, stop: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      resident.need = need;
      const onStop = (): void => {
        this.#queue.splice(this.#queue.indexOf(waiter), 1);
        reject(new OnpolicyError('ABORTED', `loading ${resident.name} was aborted`));
        this.#makeRoom();
      };
      const waiter: Waiter<Value> = {
        resident,
        need,
        enter: () => {
          stop.removeEventListener('abort', onStop);
          resident.hasRoom = true;
          resolve();
        },
        refuse: (error) => {
          stop.removeEventListener('abort', onStop);
          reject(error);
        },
      };
      this.#queue.push(waiter);
      stop.addEventListener('abort', onStop, { once: true });
      this.#makeRoom();
    });
  }

  /** Lets those that wait enter in order. Who finds no room makes the least recently used model leave. */
  #makeRoom(): void {
    for (let head = this.#queue[0]; head; head = this.#queue[0]) {
      const holders = [...this.#residents].filter(({ hasRoom }) => hasRoom);
      const free = this.#context.freeBytes();
      if (this.#fits(head.need, holders, free)) {
        this.#queue.shift();
        head.enter();
        continue;
      }
      if (!this.#fits(head.need, [], afterAll(holders, free))) {
        this.#queue.shift();
        head.refuse(memoryError(head.resident.name, head.need, free, this.#overBudget(head.need)));
        continue;
      }
      if (holders.some(({ isLeaving }) => isLeaving)) return; // it comes back when that one has left
      const ready = holders.filter(({ value }) => value !== null);
      const idle = ready.filter(({ users }) => users === 0);
      const [oldest] = (idle.length > 0 ? idle : ready).sort((a, b) => a.lastUse - b.lastUse);
      if (oldest) void this.leave(oldest);
      return;
    }
  }

  #fits(need: MemoryNeed, holders: readonly Resident<Value>[], free: FreeBytes): boolean {
    const { budget } = this.#context;
    if (budget !== null && this.#heldBytes(holders) + totalBytes(need) > budget) return false;
    const coming = holders.filter(({ value }) => value === null).map((holder) => holder.need!);
    const host = coming.reduce((sum, one) => sum + one.host, need.host);
    const device = coming.reduce((sum, one) => sum + one.device, need.device);
    return host <= free.host && device <= free.device;
  }

  #heldBytes(holders: readonly Resident<Value>[]): number {
    return holders.reduce((sum, { need, adapterBytes }) => sum + totalBytes(need!) + adapterBytes, 0);
  }

  /** The budget if the model alone exceeds it. */
  #overBudget(need: MemoryNeed): number | null {
    const { budget } = this.#context;
    return budget !== null && totalBytes(need) > budget ? budget : null;
  }

  /** Nothing uses the model now. */
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
    // A model that fails to free has ended, too.
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

/** Timers take no longer time. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** What would be free without any of these models. */
function afterAll(holders: readonly Resident<unknown>[], free: FreeBytes): FreeBytes {
  const loaded = holders.filter(({ value }) => value !== null).map(({ need }) => need!);
  return {
    host: loaded.reduce((sum, { host }) => sum + host, free.host),
    device: loaded.reduce((sum, { device }) => sum + device, free.device),
  };
}
