/** The methods of a thread -> replies to the calls of its owner, which come one at a time. */
import { parentPort } from 'node:worker_threads';
import { type ErrorCode, messageOf, OnpolicyError } from '../../errors.ts';

/** What a thread offers. `close` frees what it holds, and is the last call. */
export type Methods<Offered> = { [Name in keyof Offered]: (...given: never[]) => unknown } & {
  close(): Promise<void>;
};

/** A call on its way to the thread, and what comes back. */
export type Call = { readonly name: string; readonly given: readonly unknown[] };
export type Reply =
  | { readonly value: unknown; readonly code?: undefined }
  | { readonly code: ErrorCode | 'KV_FULL'; readonly message: string };

/**
 * Makes the methods of this thread callable from its owner, and ends it after `close`. The thread is the owner's alone: it loses
 * `Float16Array`, in which onnxruntime-common would keep 16-bit tensors that onnxruntime-node cannot read.
 */
export function serve<Offered extends Methods<Offered>>(methods: Offered): void {
  Reflect.deleteProperty(globalThis, 'Float16Array');
  parentPort?.on('message', async ({ name, given }: Call) => {
    parentPort!.postMessage(await replyTo(methods[name as keyof Offered], given));
    if (name === 'close') parentPort!.close();
  });
}

async function replyTo(method: (...given: never[]) => unknown, given: readonly unknown[]): Promise<Reply> {
  try {
    return { value: await method(...(given as never[])) };
  } catch (error) {
    const { code } = error as { code?: string };
    const known = error instanceof OnpolicyError ? error.code : code === 'KV_FULL' ? code : 'BACKEND_FAILED';
    return { code: known, message: messageOf(error) };
  }
}
