/** Calls of the methods of another thread -> promises of what they return. It runs one call at a time. */
import { Worker } from 'node:worker_threads';
import { packageFile } from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';
import type { Call, Methods, Reply } from './serve.ts';

/** A thread with a session. A call that waits keeps the process alive, an idle thread does not. */
export class ComputeThread<Offered extends Methods<Offered>> {
  readonly #worker: Worker;
  #pending: { resolve: (reply: Reply) => void; reject: (cause: Error) => void } | null = null;
  #last: Promise<unknown> = Promise.resolve();
  #end: OnpolicyError | null = null;

  constructor(worker: 'worker' | 'vision-worker' | 'embedding-worker') {
    this.#worker = new Worker(packageFile(`dist/backends/onnx/${worker}.js`), {
      execArgv: [],
      name: 'onpolicy-onnx',
    });
    this.#worker.unref();
    this.#worker.on('message', (reply: Reply) => this.#settle(reply));
    this.#worker.on('error', (cause) => this.#fail('the thread that computes has failed', cause));
    this.#worker.on('exit', () => this.#fail('the thread that computes has ended'));
  }

  /** Calls behind those that wait. Rejects with the code that the thread gave; `KV_FULL` as the backend's contract has it. */
  async call<Name extends keyof Offered & string>(
    name: Name,
    ...given: Parameters<Offered[Name]>
  ): Promise<Awaited<ReturnType<Offered[Name]>>> {
    const answered = this.#last.catch(() => {}).then(() => this.#send({ name, given }));
    this.#last = answered;
    const reply = await answered;
    if (reply.code === undefined) return reply.value as Awaited<ReturnType<Offered[Name]>>;
    if (reply.code === 'KV_FULL') throw Object.assign(new Error(reply.message), { code: reply.code });
    throw new OnpolicyError(reply.code, reply.message);
  }

  /** Frees the session and ends the thread. */
  async close(): Promise<void> {
    if (this.#end) return;
    await this.call('close', ...([] as unknown as Parameters<Offered['close']>)).catch(() => {}); // it may have died
    this.#end = new OnpolicyError('CLOSED', 'the model is closed');
    await this.#worker.terminate();
  }

  #send(call: Call): Promise<Reply> {
    if (this.#end) return Promise.reject(this.#end);
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject };
      this.#worker.ref();
      this.#worker.postMessage(call);
    });
  }

  #settle(reply: Reply): void {
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
