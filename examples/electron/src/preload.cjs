// @ts-check
/** The window's side of IPC: `window.assistant` has the methods of the assistant and its two events, and nothing else. */
const { contextBridge, ipcRenderer } = require('electron');

const METHODS = [
  ...['state', 'open', 'create', 'remove', 'save', 'ask', 'stop', 'rate', 'file'],
  ...['choose', 'download', 'pause', 'removeModel', 'learn', 'undo', 'report'],
];

contextBridge.exposeInMainWorld('assistant', {
  ...Object.fromEntries(
    METHODS.map((method) => [
      method,
      (/** @type {unknown[]} */ ...args) => ipcRenderer.invoke(method, ...args),
    ]),
  ),
  on: (/** @type {'state' | 'answer'} */ event, /** @type {(value: unknown) => void} */ listener) => {
    if (event === 'state' || event === 'answer') ipcRenderer.on(event, (_, value) => listener(value));
  },
});
