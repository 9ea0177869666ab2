/** Calls of methods <-> messages between two processes or threads, each of which may call the other. */
import { abortedBy, type ErrorCode, type ErrorDetail, fromNative, OnpolicyError } from '../errors.ts';
import { onAbort } from './abort.ts';
import { bufferedIterator } from './buffered-iterator.ts';

/** An error as plain data. */
type PlainError = {
  readonly code: ErrorCode;
  readonly message: string;
  readonly param: string | undefined;
  readonly detail: readonly ErrorDetail[] | undefined;
  readonly retryAfterMs: number | undefined;
};

/** A message between the processes. `id` identifies the call. */
export type Message =
  | { readonly type: 'call'; readonly id: number; readonly method: string; readonly args: readonly unknown[] }
  | { readonly type: 'tell'; readonly method: string; readonly args: readonly unknown[] }
  | { readonly type: 'abort'; readonly id: number }
  | { readonly type: 'taken'; readonly id: number; readonly count: number }
  | { readonly type: 'value'; readonly id: number; readonly value: unknown }
  | { readonly type: 'stream'; readonly id: number }
  | { readonly type: 'part'; readonly id: number; readonly part: unknown }
  | { readonly type: 'end'; readonly id: number }
  | { readonly type: 'failed'; readonly id: number; readonly error: PlainError };

/** Functions of the process that a peer uses. */
export type PeerContext = {
  /** Sends messages in order. Throws if one cannot be cloned. */
  readonly send: (messages: readonly Message[]) => void;
  /** Answers a call of the other side. An async iterable is sent part by part. */
  readonly serve: (method: string, args: unknown[], signal: AbortSignal) => unknown;
  /** Called with true while calls wait for the other side, so that the process must not end by itself. */
  readonly onWaiting?: (isWaiting: boolean) => void;
};

/** The answer of a call that returns a stream. */
export class RemoteStream {
  readonly parts: AsyncIterator<unknown>;
  /** Ends the stream. A reader gets an error with the code `ABORTED`. */
  readonly stop: () => void;

  constructor(parts: AsyncIterator<unknown>, stop: () => void) {
    this.parts = parts;
    this.stop = stop;
  }
}

/** A call to the other side. */
type Call = {
  /** Name of the call, for the error if the process ends. */
  readonly what: string;
  readonly settle: (message: Message) => void;
  readonly fail: (error: OnpolicyError) => void;
};

/** A call that the other side made. */
type Served = { readonly controller: AbortController; untaken: number; wake: () => void };

/** Highest number of stream parts that are sent but not read. Then the sender waits for the reader. */
const WINDOW = 256;

/** One side of the connection. */
export class Peer {
  readonly #context: PeerContext;
  readonly #calls = new Map<number, Call>();
  readonly #served = new Map<number, Served>();
  #lastId = 0;
  #waiting = 0;
  #outgoing: Message[] = [];
  #ended: ((what: string) => OnpolicyError) | null = null;

  constructor(context: PeerContext) {
    this.#context = context;
  }

  /** True if it is answering no call. */
  get isIdle(): boolean {
    return this.#served.size === 0;
  }

  /** True if the other side has ended. */
  get hasEnded(): boolean {
    return this.#ended !== null;
  }

  /** Calls the other side. Returns its answer: a value or a {@link RemoteStream}. Rejects with its error. */
  call(
    method: string,
    args: readonly unknown[],
    what = method,
    signal: AbortSignal | undefined = undefined,
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#ended) throw this.#ended(what);
      const id = ++this.#lastId;
      this.#context.send([{ type: 'call', id, method, args }]);
      const abort = (): void => this.#context.send([{ type: 'abort', id }]);
      const settled = (): void => {
        aborting[Symbol.dispose]();
        this.#calls.delete(id);
        this.#wait(-1);
      };
      this.#wait(1);
      const aborting = onAbort(signal, abort);
      this.#calls.set(id, {
        what,
        settle: (message) => {
          settled();
          if (message.type === 'stream') resolve(this.#readStream(id, what, signal));
          else if (message.type === 'value') resolve(message.value);
          else if (message.type === 'failed') reject(toError(message.error, signal));
        },
        fail: (error) => {
          settled();
          reject(error);
        },
      });
    });
  }

  /** Sends a message without an answer. */
  tell(method: string, args: readonly unknown[]): void {
    this.#context.send([{ type: 'tell', method, args }]);
  }

  /** Handles messages of the other side. */
  receive(messages: readonly Message[]): void {
    for (const message of messages) {
      if (message.type === 'call') void this.#serve(message);
      else if (message.type === 'tell') this.#context.serve(message.method, [...message.args], NEVER);
      else if (message.type === 'abort') {
        const served = this.#served.get(message.id);
        served?.controller.abort();
        served?.wake();
      } else if (message.type === 'taken') {
        const served = this.#served.get(message.id);
        if (served) served.untaken -= message.count;
        served?.wake();
      } else this.#calls.get(message.id)?.settle(message);
    }
  }

  /** Ends the connection after the other side has ended: all calls fail, including later ones. */
  end(toError: (what: string) => OnpolicyError): void {
    this.#ended = toError;
    for (const { what, fail } of [...this.#calls.values()]) fail(toError(what));
  }

  async #serve({ id, method, args }: Message & { type: 'call' }): Promise<void> {
    const served: Served = { controller: new AbortController(), untaken: 0, wake: () => {} };
    this.#served.set(id, served);
    try {
      const value = await this.#context.serve(method, [...args], served.controller.signal);
      if (isStream(value)) await this.#sendParts(id, value[Symbol.asyncIterator](), served);
      else this.#post({ type: 'value', id, value });
    } catch (error) {
      const { code, message, param, detail, retryAfterMs } = fromNative(error);
      this.#post({ type: 'failed', id, error: { code, message, param, detail, retryAfterMs } });
    } finally {
      this.#served.delete(id);
    }
  }

  async #sendParts(id: number, parts: AsyncIterator<unknown>, served: Served): Promise<void> {
    this.#post({ type: 'stream', id });
    for (;;) {
      while (served.untaken >= WINDOW && !served.controller.signal.aborted)
        await new Promise<void>((resolve) => {
          served.wake = resolve;
        });
      const { done, value } = await parts.next();
      if (done) return this.#post({ type: 'end', id });
      served.untaken += 1;
      this.#post({ type: 'part', id, part: value });
    }
  }

  #readStream(id: number, what: string, signal: AbortSignal | undefined): RemoteStream {
    let ready: unknown[] = [];
    let taken = 0; // parts consumed but not yet acknowledged to the sender
    let isOver = false;
    let failure: OnpolicyError | null = null;
    let wake: () => void = () => {};
    let stopping: Disposable | null = null;
    const finish = (error: OnpolicyError | null): void => {
      isOver = true;
      failure = error;
      this.#calls.delete(id);
      stopping?.[Symbol.dispose]();
      wake();
    };
    const leave = (): void => {
      if (isOver) return;
      this.#context.send([{ type: 'abort', id }]);
      finish(null);
    };
    const stop = (): void => {
      if (isOver) return;
      leave();
      ready = [];
      failure = abortedBy(signal);
    };
    this.#calls.set(id, {
      what,
      settle: (message) => {
        if (message.type === 'part') ready.push(message.part);
        else finish(message.type === 'failed' ? toError(message.error, signal) : null);
        wake();
      },
      fail: finish,
    });
    stopping = onAbort(signal, stop);
    const next = async (): Promise<readonly unknown[] | null> => {
      if (ready.length === 0 && !isOver) {
        this.#wait(1);
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        this.#wait(-1);
      }
      if (ready.length === 0 && failure) throw failure;
      if (ready.length === 0) return null;
      const parts = ready;
      ready = [];
      taken += parts.length;
      if (taken >= WINDOW / 2 && !isOver) {
        this.#context.send([{ type: 'taken', id, count: taken }]);
        taken = 0;
      }
      return parts;
    };
    return new RemoteStream(bufferedIterator({ next, leave }), stop);
  }

  /** Queues a message. Messages of one turn of the event loop are sent together. */
  #post(message: Message): void {
    if (this.#outgoing.push(message) > 1) return;
    setImmediate(() => {
      const messages = this.#outgoing;
      this.#outgoing = [];
      this.#context.send(messages);
    });
  }

  #wait(change: 1 | -1): void {
    this.#waiting += change;
    if (this.#waiting === (change === 1 ? 1 : 0)) this.#context.onWaiting?.(change === 1);
  }
}

const NEVER = new AbortController().signal;

function toError({ code, message, ...options }: PlainError, signal: AbortSignal | undefined): OnpolicyError {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const cause = code === 'ABORTED' && signal?.aborted ? { cause: signal.reason } : {};
  return new OnpolicyError(code, message, { ...Object.fromEntries(given), ...cause });
}

function isStream(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}
