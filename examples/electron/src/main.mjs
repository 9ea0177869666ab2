// @ts-check
/** The main process: one window, one model process, and what goes between them. */
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { app, BrowserWindow, ipcMain, utilityProcess } from 'electron';
import { ModelHost } from './model-host.mjs';

const here = (/** @type {string} */ name) => fileURLToPath(new URL(name, import.meta.url));

await app.whenReady();
/** @type {import('./messages.d.ts').ModelState} */
let state = { state: 'loading', phase: 'load', fraction: 0 };
const host = new ModelHost({
  start: () => utilityProcess.fork(here('model-process.mjs'), [], { serviceName: 'model' }),
  // Downloaded at the first start. A path of a GGUF file works as well.
  model: { model: process.env['MODEL'] ?? 'hf:Qwen/Qwen2.5-1.5B-Instruct-GGUF:Q4_K_M', ...folders() },
  onState: (now) => {
    state = now;
    for (const window of BrowserWindow.getAllWindows()) window.webContents.send('state', state);
  },
});

/** @type {Map<string, AbortController>} */
const asked = new Map();
ipcMain.on('watch', ({ sender }) => sender.send('state', state));
ipcMain.on('abort', ({ sender }, id) => asked.get(`${sender.id}.${id}`)?.abort());
ipcMain.handle('ask', async ({ sender }, id, request) => {
  const key = `${sender.id}.${id}`;
  const controller = new AbortController();
  const abort = () => controller.abort();
  asked.set(key, controller);
  sender.once('destroyed', abort); // nobody reads on
  const onChunk = (/** @type {unknown} */ chunk) => sender.isDestroyed() || sender.send('chunk', id, chunk);
  return await host
    .ask(request, onChunk, controller.signal)
    .then(
      () => null,
      ({ code, message }) => ({ code, message }), // as plain data: IPC keeps only the message of an error
    )
    .finally(() => {
      asked.delete(key);
      sender.off('destroyed', abort);
    });
});

const window = new BrowserWindow({ webPreferences: { preload: here('preload.cjs') } });
await window.loadFile(here('index.html'));
app.on('window-all-closed', () => app.quit());
app.on('will-quit', () => host.close());

/** Where models and the store lie: apps may not write beside their own files. */
function folders() {
  const data = app.getPath('userData');
  return { home: path.join(data, 'onpolicy'), hub: { folder: path.join(data, 'models') } };
}
