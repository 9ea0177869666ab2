// @ts-check
/** Messages of the main process -> one runtime -> messages back. All that computes is here. */
import { createRuntime, OnpolicyError } from 'onpolicy';

/**
 * Answers at a port until it is told to close.
 * @param {import('./messages.d.ts').Port} port
 */
export function serveModel(port) {
  /** @type {Promise<import('onpolicy').Runtime> | undefined} */
  let opening;
  /** @type {Map<number, AbortController>} */
  const running = new Map();

  port.on('message', async ({ data }) => {
    if (data.type === 'open') await open(data.options);
    if (data.type === 'ask') await ask(data.id, data.request);
    if (data.type === 'abort') running.get(data.id)?.abort();
    if (data.type === 'close') {
      await (await opening)?.close();
      process.exit();
    }
  });

  /** @param {import('./messages.d.ts').ModelOptions} options */
  async function open(options) {
    opening = createRuntime({
      ...options,
      onProgress: (_, fraction, phase) => port.postMessage({ type: 'progress', phase, fraction }),
    });
    try {
      await (await opening).contextSize(); // downloads and loads the model
      port.postMessage({ type: 'ready' });
    } catch (error) {
      port.postMessage({ type: 'failed', id: null, error: toMessage(error) });
    }
  }

  /**
   * @param {number} id
   * @param {import('onpolicy').ChatCompletionRequest} request
   */
  async function ask(id, request) {
    const controller = new AbortController();
    running.set(id, controller);
    try {
      const runtime = await opening;
      if (!runtime) throw new Error('expected open before ask');
      const options = { signal: controller.signal };
      const chunks = await runtime.createCompletion({ ...request, stream: true }, options);
      for await (const chunk of chunks) port.postMessage({ type: 'chunk', id, chunk });
      port.postMessage({ type: 'end', id });
    } catch (error) {
      port.postMessage({ type: 'failed', id, error: toMessage(error) });
    } finally {
      running.delete(id);
    }
  }
}

/**
 * @param {unknown} error
 * @returns {import('./messages.d.ts').ModelError}
 */
function toMessage(error) {
  const code = error instanceof OnpolicyError ? error.code : 'UNKNOWN';
  return { code, message: error instanceof Error ? error.message : String(error) };
}
