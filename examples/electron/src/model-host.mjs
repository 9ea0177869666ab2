// @ts-check
/** Requests -> the model process, which is started again when it crashes. Runs in the main process and computes nothing. */

/** So many starts in a row that end before the model is ready are enough. */
const MAX_FAILED_STARTS = 3;
const ENDED = { code: 'PROCESS_ENDED', message: 'the model process ended' };

/** A failure that the model process reported, or its end. */
export class ModelFailure extends Error {
  /** @param {import('./messages.d.ts').ModelError} error */
  constructor({ code, message }) {
    super(message);
    this.code = code;
  }
}

/** Owns the model process. */
export class ModelHost {
  #start;
  #options;
  #onState;
  /** @type {import('./messages.d.ts').ModelProcess | null} */
  #process = null;
  /** @type {Map<number, Answer>} */
  #answers = new Map();
  #lastId = 0;
  #failedStarts = 0;
  #isClosed = false;

  /**
   * @param {object} options
   * @param {() => import('./messages.d.ts').ModelProcess} options.start starts the process
   * @param {import('./messages.d.ts').ModelOptions} options.model
   * @param {(state: import('./messages.d.ts').ModelState) => void} options.onState
   */
  constructor({ start, model, onState }) {
    this.#start = start;
    this.#options = model;
    this.#onState = onState;
    this.#open();
  }

  /**
   * Streams one answer.
   * @param {import('onpolicy').ChatCompletionRequest} request
   * @param {(chunk: import('onpolicy').ChatCompletionChunk) => void} onChunk
   * @param {AbortSignal} signal
   * @returns {Promise<void>} settles when the answer has ended
   * @throws {ModelFailure}
   */
  async ask(request, onChunk, signal) {
    const id = ++this.#lastId;
    const model = this.#process;
    if (!model) throw new ModelFailure(ENDED);
    const abort = () => this.#process?.postMessage({ type: 'abort', id });
    signal.addEventListener('abort', abort);
    try {
      await new Promise((resolve, reject) => {
        this.#answers.set(id, { onChunk, resolve: () => resolve(undefined), reject });
        model.postMessage({ type: 'ask', id, request });
        if (signal.aborted) abort();
      });
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  /** Ends the process in order. */
  close() {
    this.#isClosed = true;
    this.#process?.postMessage({ type: 'close' });
  }

  #open() {
    const model = this.#start();
    this.#process = model;
    model.on('message', (message) => this.#take(message));
    model.once('exit', (code) => this.#onExit(code));
    this.#onState({ state: 'loading', phase: 'load', fraction: 0 });
    model.postMessage({ type: 'open', options: this.#options });
  }

  /** @param {import('./messages.d.ts').FromModel} message */
  #take(message) {
    if (message.type === 'progress') return this.#onState({ ...message, state: 'loading' });
    if (message.type === 'ready') {
      this.#failedStarts = 0;
      return this.#onState({ state: 'ready' });
    }
    if (message.type === 'failed' && message.id === null)
      return this.#onState({ state: 'failed', error: message.error });
    const id = /** @type {number} */ (message.id);
    const answer = this.#answers.get(id);
    if (message.type === 'chunk') return answer?.onChunk(message.chunk);
    this.#answers.delete(id);
    if (message.type === 'end') answer?.resolve();
    else answer?.reject(new ModelFailure(message.error));
  }

  /** @param {number} code */
  #onExit(code) {
    this.#process = null;
    const error = { ...ENDED, message: `${ENDED.message} with code ${code}` };
    for (const answer of this.#answers.values()) answer.reject(new ModelFailure(error));
    this.#answers.clear();
    if (this.#isClosed) return;
    this.#failedStarts += 1;
    if (this.#failedStarts < MAX_FAILED_STARTS) this.#open();
    else this.#onState({ state: 'failed', error });
  }
}

/** @typedef {{ onChunk: (chunk: import('onpolicy').ChatCompletionChunk) => void, resolve: () => void, reject: (error: Error) => void }} Answer */
