/** Method calls to another thread -> promises of their results. The thread runs one call at a time. */
import { Worker } from 'node:worker_threads';
import { type Message, Peer, packageFile, Queue } from '../common/index.ts';
import { OnpolicyError } from '../errors.ts';
import type { Methods } from './serve.ts';

/** A thread with a session. A waiting call keeps the process alive, an idle thread does not. */
export class ComputeThread<Offered extends Methods<Offered>> {
  readonly #worker: Worker;
  readonly #peer: Peer;
  readonly #queue = new Queue();

  constructor(worker: 'worker' | 'vision-worker' | 'embedding-worker') {
    this.#worker = new Worker(packageFile(`dist/onnx/${worker}.js`), {
      execArgv: [],
      name: 'onpolicy-onnx',
    });
    this.#worker.unref();
    this.#peer = new Peer({
      send: (messages) => this.#worker.postMessage(messages),
      serve: () => null, // the thread calls no methods here
      onWaiting: (isWaiting) => (isWaiting ? this.#worker.ref() : this.#worker.unref()),
    });
    this.#worker.on('message', (messages: Message[]) => this.#peer.receive(messages));
    this.#worker.on('error', (cause) => this.#fail('the thread that computes has failed', cause));
    this.#worker.on('exit', () => this.#fail('the thread that computes has ended'));
  }

  /** Queues a call. Rejects with the error of the thread. */
  async call<Name extends keyof Offered & string>(
    name: Name,
    ...given: Parameters<Offered[Name]>
  ): Promise<Awaited<ReturnType<Offered[Name]>>> {
    const answer = await this.#queue.run('calls', () => this.#peer.call(name, given));
    return answer as Awaited<ReturnType<Offered[Name]>>;
  }

  /** Frees the session and ends the thread. */
  async close(): Promise<void> {
    if (this.#peer.hasEnded) return;
    await this.call('close', ...([] as unknown as Parameters<Offered['close']>)).catch(() => {}); // it may have died
    this.#peer.end(() => new OnpolicyError('CLOSED', 'the model is closed'));
    await this.#worker.terminate();
  }

  #fail(message: string, cause?: unknown): void {
    if (!this.#peer.hasEnded) this.#peer.end(() => new OnpolicyError('BACKEND_FAILED', message, { cause }));
  }
}
