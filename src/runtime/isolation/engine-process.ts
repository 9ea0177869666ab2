/** Calls of methods -> a child process with its own runtime. It starts with the first call, and again if it has died. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { type Message, Peer, packageFile } from '../../common/index.ts';
import { messageOf, OnpolicyError } from '../../errors.ts';
import type { MediaStats } from '../../models/media/index.ts';
import type { ResidentModel } from '../../protocol/service/index.ts';
import type { CheckedOptions } from '../options.ts';
import type { RuntimeStats } from '../stats.ts';

/** State that the child process reports after each answer and every 100 ms while requests run. */
export type RuntimeState = {
  readonly stats: RuntimeStats;
  readonly mediaStats: MediaStats;
  readonly loaded: readonly ResidentModel[];
};

const CALLBACKS = ['log', 'onStoreProblem', 'onProgress', 'tracker'] as const;

/** Options that are functions. They stay in this process, and the child process calls them by message. */
export type Callbacks = Pick<CheckedOptions, (typeof CALLBACKS)[number]>;

/** Arguments of the first call of a child process. */
export type OpenArguments = readonly [
  options: Omit<CheckedOptions, keyof Callbacks>,
  callbacks: readonly (keyof Callbacks)[],
  trackerName: string | null,
];

/** A running child process. */
type Running = {
  readonly child: ChildProcess;
  readonly peer: Peer;
  /** Resolves when the calls of {@link EngineProcess.replayed} have ended. */
  ready: Promise<unknown>;
  state: RuntimeState | null;
  /** Last line of its error stream that is not part of a stack trace, shortened. */
  words: string;
};

/** A call that is repeated in every new child process. */
export type ReplayedCall = { readonly method: string; readonly args: readonly unknown[] };

/** Number of restarts in a row without a wait. Each further one waits, twice as long as the one before. */
const FREE_STARTS = 3;
const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 60_000;
/** Most milliseconds that the child process may take to close. */
const CLOSE_MS = 30_000;
/** Most milliseconds from its exit to the end of its error stream. */
const LAST_WORDS_MS = 500;
const MOST_WORDS = 300;
/** Lines that Node writes after the cause of a crash. */
const STACK_LINE = /^(Node\.js v|-+ |\d+: |\s|$)/;

/** Starts, restarts and closes the child process. */
export class EngineProcess {
  /** Calls that are repeated in every new child process, by a key. */
  readonly replayed = new Map<string, ReplayedCall>();
  readonly #options: OpenArguments[0];
  readonly #callbacks: Callbacks;
  readonly #ending = new Set<Promise<void>>();
  #running: Running | null = null;
  #deaths = 0; // deaths in a row, without an answer in between
  #lastDeath = '';
  #readyMs = 0; // earliest time of the next start, as `performance.now()`
  #isClosed = false;

  constructor(options: OpenArguments[0], callbacks: Callbacks) {
    this.#options = options;
    this.#callbacks = callbacks;
  }

  /**
   * Returns the latest reported state, or null before the first report. Also asks for a new report, so that a later call sees changes
   * between two answers.
   */
  get state(): RuntimeState | null {
    this.#running?.peer.tell('sayState', []);
    return this.#running?.state ?? null;
  }

  /** True if the child process was started. */
  get isRunning(): boolean {
    return this.#running !== null;
  }

  /** Calls a method of the child's runtime. `what`: words for the caller's request in error messages. */
  async call(method: string, args: readonly unknown[], what: string, signal?: AbortSignal): Promise<unknown> {
    if (this.#isClosed) throw closed();
    this.#running ??= this.#start();
    const { ready, peer } = this.#running;
    await ready;
    return await peer.call(method, args, what, signal);
  }

  /** Closes the child process and waits for its exit. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#running) {
      const { child, peer } = this.#running;
      const kill = setTimeout(() => child.kill('SIGKILL'), CLOSE_MS);
      await peer.call('close', []).catch(() => {}); // fails if the process has died
      if (child.connected) child.disconnect();
      await Promise.all(this.#ending);
      clearTimeout(kill);
    }
    await Promise.all(this.#ending);
  }

  #start(): Running {
    if (this.#readyMs > performance.now())
      throw this.#failure(
        `the engine's process ended ${this.#deaths} times in a row, the last time ${this.#lastDeath}`,
      );
    const child = startProgram();
    const peer = new Peer({
      send: (messages) => {
        if (child.connected) child.send(messages as Message[], () => {}); // if sending fails, the exit of the process is reported
      },
      serve: (method, args) => this.#serve(running, method, args),
      onWaiting: (isWaiting) => (isWaiting ? child.channel?.ref() : child.channel?.unref()),
    });
    const running: Running = { child, peer, ready: Promise.resolve(), state: null, words: '' };
    child.on('message', (messages) => {
      for (const { type } of messages as Message[]) if (type === 'value' || type === 'part') this.#deaths = 0;
      peer.receive(messages as Message[]);
    });
    child.unref();
    child.channel?.unref();
    this.#listen(running);
    const ended = this.#watch(running);
    this.#ending.add(ended);
    void ended.then(() => this.#ending.delete(ended));
    const names = CALLBACKS.filter((name) => this.#callbacks[name]);
    const open: OpenArguments = [this.#options, names, this.#callbacks.tracker?.name ?? null];
    peer.tell('open', open);
    running.ready = Promise.allSettled(
      [...this.replayed.values()].map(({ method, args }) => peer.call(method, args)),
    );
    return running;
  }

  /** Forwards the error stream of the child process to its log. */
  #listen(running: Running): void {
    const stream = running.child.stderr as Socket;
    stream.unref();
    createInterface({ input: stream }).on('line', (line) => {
      if (!STACK_LINE.test(line)) running.words = line.slice(0, MOST_WORDS);
      if (this.#callbacks.log) this.#callbacks.log('warn', line);
      else process.stderr.write(`${line}\n`);
    });
  }

  /** Resolves when the child process has exited and all its calls have been rejected. */
  #watch(running: Running): Promise<void> {
    const { child } = running;
    return new Promise((resolve) => {
      const leave = (): void => {
        if (this.#running === running) this.#running = null;
        child.ref(); // keeps this process alive until the calls of the child are rejected
      };
      const end = (how: string): void => {
        leave();
        this.#bury(running, how);
        resolve();
      };
      child.on('disconnect', leave);
      child.on('error', ({ message }) => end(`before it began: ${message}`));
      child.on('exit', (code, signal) => {
        leave();
        const how = signal ? `by signal ${signal}` : `with code ${exitCode(code)}`;
        const late = setTimeout(() => end(how), LAST_WORDS_MS);
        child.on('close', () => {
          clearTimeout(late);
          end(how);
        });
      });
    });
  }

  #bury({ peer, state, words }: Running, end: string): void {
    if (peer.hasEnded) return;
    const how = words === '' ? end : `${end} (${words})`;
    this.#deaths += 1;
    this.#lastDeath = how;
    const waits = this.#deaths - FREE_STARTS;
    if (waits >= 0) this.#readyMs = performance.now() + Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** waits);
    const loading = (state?.loaded ?? []).filter((model) => model.state === 'loading');
    const loads = loading.length > 0 && `loaded ${loading.map(({ name }) => name).join(', ')}`;
    peer.end((what) =>
      this.#isClosed
        ? closed()
        : this.#failure(`the engine's process ended ${how} while it ${loads || `used ${what}`}`),
    );
  }

  #failure(text: string): OnpolicyError {
    const ms = Math.ceil(this.#readyMs - performance.now());
    if (ms <= 0) return new OnpolicyError('BACKEND_FAILED', `${text}; it starts again for the next request`);
    const wait = `it starts again in ${Math.ceil(ms / 1000)} s at the earliest`;
    return new OnpolicyError('BACKEND_FAILED', `${text}; ${wait}`, { retryAfterMs: ms });
  }

  #serve(running: Running, method: string, args: unknown[]): unknown {
    if (method === 'state') {
      running.state = args[0] as RuntimeState;
      return null;
    }
    const [name, part] = method.split('.') as [keyof Callbacks, string | undefined];
    const owner = (part === undefined ? this.#callbacks : this.#callbacks[name]) as unknown as Record<
      string,
      Callback
    >;
    const callback = (): unknown => owner[part ?? name]!(...args);
    return part === undefined ? queueMicrotask(callback) : callback(); // an exception of the caller's callback must not reach the peer
  }
}

type Callback = (...args: unknown[]) => unknown;

function startProgram(): ChildProcess {
  try {
    return spawn(process.execPath, [PROGRAM], {
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      env: {
        ...process.env,
        GGML_NO_BACKTRACE: '1', // else a backtrace would follow the failed assertion, which `words` should have
        ...('electron' in process.versions ? { ELECTRON_RUN_AS_NODE: '1' } : {}),
      },
      windowsHide: true,
    });
  } catch (cause) {
    const text = `the engine's process could not be started: ${messageOf(cause)}`;
    throw new OnpolicyError('BACKEND_FAILED', text, { cause });
  }
}

function closed(): OnpolicyError {
  return new OnpolicyError('CLOSED', 'the runtime is closed');
}

/** Returns the exit code as text. Codes of Windows, such as that of an access violation, are in hexadecimal. */
function exitCode(code: number | null): string {
  return code !== null && code > 0xffff ? `0x${code.toString(16).toUpperCase()}` : String(code);
}

const PROGRAM = packageFile('dist/runtime/isolation/program.js');
