/** The methods of a thread -> answers to the calls of its owner. */
import { parentPort } from 'node:worker_threads';
import { type Message, Peer } from '../common/index.ts';

/** Methods of a thread. `close` frees its resources, and is the last call. */
export type Methods<Offered> = { [Name in keyof Offered]: (...given: never[]) => unknown } & {
  close(): Promise<void>;
};

/**
 * Makes the methods of this thread callable from its owner. It deletes `Float16Array` from the thread: onnxruntime-common would keep 16-bit
 * tensors in it, which onnxruntime-node cannot read.
 */
export function serve<Offered extends Methods<Offered>>(methods: Offered): void {
  Reflect.deleteProperty(globalThis, 'Float16Array');
  const peer = new Peer({
    send: (messages) => parentPort!.postMessage(messages),
    serve: (name, given) => methods[name as keyof Offered](...(given as never[])),
  });
  parentPort?.on('message', (messages: Message[]) => peer.receive(messages));
}
