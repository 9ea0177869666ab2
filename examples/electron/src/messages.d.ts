/** What the app's main process and the model's process say to each other. Each message is plain data that can be cloned. */
import type { ChatCompletionChunk, ChatCompletionRequest, RuntimeOptions } from 'onpolicy';

/** Options of a runtime that can cross to another process. */
export type ModelOptions = Pick<
  RuntimeOptions,
  'model' | 'home' | 'hub' | 'gpu' | 'contextSize' | 'maxSequences'
>;

/** Main process -> model process. */
export type ToModel =
  | { readonly type: 'open'; readonly options: ModelOptions }
  | { readonly type: 'ask'; readonly id: number; readonly request: ChatCompletionRequest }
  | { readonly type: 'abort'; readonly id: number }
  | { readonly type: 'close' };

/** Model process -> main process. `id` is that of the `ask`; a failure without one is of `open`. */
export type FromModel =
  | { readonly type: 'progress'; readonly phase: 'download' | 'load'; readonly fraction: number }
  | { readonly type: 'ready' }
  | { readonly type: 'chunk'; readonly id: number; readonly chunk: ChatCompletionChunk }
  | { readonly type: 'end'; readonly id: number }
  | { readonly type: 'failed'; readonly id: number | null; readonly error: ModelError };

/** An `OnpolicyError` as plain data. `PROCESS_ENDED`: the model process ended, and another one has been started. */
export type ModelError = { readonly code: string; readonly message: string };

/** What the window shows of the model. */
export type ModelState =
  | { readonly state: 'loading'; readonly phase: 'download' | 'load'; readonly fraction: number }
  | { readonly state: 'ready' }
  | { readonly state: 'failed'; readonly error: ModelError };

/** The model process' side of the connection: `process.parentPort` of Electron. */
export type Port = {
  postMessage(message: FromModel): void;
  on(event: 'message', listener: (event: { data: ToModel }) => void): unknown;
};

/** The main process' side: a `UtilityProcess` of Electron. */
export type ModelProcess = {
  postMessage(message: ToModel): void;
  kill(): unknown;
  on(event: 'message', listener: (message: FromModel) => void): unknown;
  once(event: 'exit', listener: (code: number) => void): unknown;
};
