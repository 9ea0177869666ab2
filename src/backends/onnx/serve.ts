/** Requests of a thread's owner -> replies, one at a time: the next one is sent when this one is answered. */
import { type MessagePort, parentPort } from 'node:worker_threads';
import { messageOf, OnpolicyError } from '../../errors.ts';
import type { Reply } from './messages.ts';

/**
 * Answers each request with what `handle` makes of it. The thread ends after a request of kind `close`. It is the caller's
 * alone: it loses `Float16Array`, in which onnxruntime-common would keep 16-bit tensors that onnxruntime-node cannot read.
 */
export function serve<Request extends { readonly kind: string }, Value>(
  handle: (request: Request) => Promise<Value | undefined>,
): void {
  Reflect.deleteProperty(globalThis, 'Float16Array');
  parentPort?.on('message', (request: Request) => reply(parentPort!, request, handle));
}

async function reply<Request extends { readonly kind: string }, Value>(
  port: MessagePort,
  request: Request,
  handle: (request: Request) => Promise<Value | undefined>,
): Promise<void> {
  let answer: Reply<Value>;
  try {
    const value = await handle(request);
    answer = value === undefined ? { kind: 'done' } : { kind: 'done', value };
  } catch (error) {
    const { code } = error as { code?: string };
    const known = error instanceof OnpolicyError ? error.code : code === 'KV_FULL' ? code : 'BACKEND_FAILED';
    answer = { kind: 'failed', code: known, message: messageOf(error) };
  }
  port.postMessage(answer);
  if (request.kind === 'close') port.close();
}
