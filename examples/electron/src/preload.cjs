// @ts-check
/** The window's side of IPC: `window.model` can ask, abort and hear of the state, and nothing else. */
const { contextBridge, ipcRenderer } = require('electron');

let lastId = 0;
/** @type {Map<number, (chunk: unknown) => void>} */
const listeners = new Map();
ipcRenderer.on('chunk', (_, id, chunk) => listeners.get(id)?.(chunk));

contextBridge.exposeInMainWorld('model', {
  /** Streams an answer to `onChunk`; resolves with null at its end, or with the error. */
  ask: (/** @type {unknown} */ request, /** @type {(chunk: unknown) => void} */ onChunk) => {
    const id = ++lastId;
    listeners.set(id, onChunk);
    const ended = ipcRenderer.invoke('ask', id, request).finally(() => listeners.delete(id));
    return { ended, abort: () => ipcRenderer.send('abort', id) };
  },
  onState: (/** @type {(state: unknown) => void} */ listener) => {
    ipcRenderer.on('state', (_, state) => listener(state));
    ipcRenderer.send('watch');
  },
});
