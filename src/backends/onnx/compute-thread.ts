/** Requests -> promises of the replies of a worker, which handles one request at a time. */
import { Worker } from 'node:worker_threads';
import { packageFile } from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';
import type { Reply } from './messages.ts';

/** A thread with a session. A request that waits keeps the process alive, an idle thread does not. */
export class ComputeThread<Request extends { readonly kind: string }, Value> {
  readonly #worker: Worker;
  #pending: { resolve: (reply: Reply<Value>) => void; reject: (cause: Error) => void } | null = null;
  #last: Promise<unknown> = Promise.resolve();
  #end: OnpolicyError | null = null;

  constructor(worker: 'worker' | 'vision-worker' | 'embedding-worker') {
    this.#worker = new Worker(packageFile(`dist/backends/onnx/${worker}.js`), {
      execArgv: [],
      name: 'onpolicy-onnx',
    });
    this.#worker.unref();
    this.#worker.on('message', (reply: Reply<Value>) => this.#settle(reply));
    this.#worker.on('error', (cause) => this.#fail('the thread that computes has failed', cause));
    this.#worker.on('exit', () => this.#fail('the thread that computes has ended'));
  }

  /** Sends a request behind those that wait. Rejects with the code that the thread gave; `KV_FULL` as the backend's contract has it. */
  async request(request: Request): Promise<Value | undefined> {
    const before = this.#last;
    const answered = before.catch(() => {}).then(() => this.#send(request));
    this.#last = answered;
    const reply = await answered;
    if (reply.kind === 'done') return reply.value;
    if (reply.code === 'KV_FULL') throw Object.assign(new Error(reply.message), { code: reply.code });
    throw new OnpolicyError(reply.code, reply.message);
  }

  /** Frees the session and ends the thread. */
  async close(): Promise<void> {
    if (this.#end) return;
    await this.request({ kind: 'close' } as Request).catch(() => {}); // it may have died
    this.#end = new OnpolicyError('CLOSED', 'the model is closed');
    await this.#worker.terminate();
  }

  #send(request: Request): Promise<Reply<Value>> {
    if (this.#end) return Promise.reject(this.#end);
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject };
      this.#worker.ref();
      this.#worker.postMessage(request);
    });
  }

  #settle(reply: Reply<Value>): void {
    const pending = this.#pending;
    this.#pending = null;
    this.#worker.unref();
    pending?.resolve(reply);
  }

  #fail(message: string, cause?: unknown): void {
    this.#end ??= new OnpolicyError('BACKEND_FAILED', message, { cause });
    this.#pending?.reject(this.#end);
    this.#pending = null;
  }
}
