// @ts-check
/** The main process: one window, the model in a process of its own, and what goes between them. */
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { app, BrowserWindow, ipcMain } from 'electron';
import { createRuntime } from 'onpolicy';

const here = (/** @type {string} */ name) => fileURLToPath(new URL(name, import.meta.url));

await app.whenReady();
/** What the window shows of the model: `loading` with its phase and fraction, `ready`, or `failed` with its error. */
let state = /** @type {object} */ ({ state: 'loading', phase: 'load', fraction: 0 });
const show = (/** @type {object} */ now) => {
  state = now;
  for (const window of BrowserWindow.getAllWindows()) window.webContents.send('state', state);
};
// Errors as plain data: IPC keeps only their message.
const plain = (/** @type {import('onpolicy').OnpolicyError} */ { code, message }) => ({ code, message });

const runtime = await createRuntime({
  isolate: true, // a native fault ends that process, which starts again, and not the app
  // Downloaded at the first start. A path of a GGUF file works as well.
  model: process.env['MODEL'] ?? 'hf:Qwen/Qwen2.5-1.5B-Instruct-GGUF:Q4_K_M',
  ...folders(),
  onProgress: (_, fraction, phase) =>
    show(phase === 'load' && fraction === 1 ? { state: 'ready' } : { state: 'loading', phase, fraction }),
});
runtime.contextSize().then(
  () => show({ state: 'ready' }),
  (error) => show({ state: 'failed', error: plain(error) }),
);

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
  try {
    const { signal } = controller;
    for await (const chunk of await runtime.createCompletion({ ...request, stream: true }, { signal }))
      sender.send('chunk', id, chunk);
    return null;
  } catch (error) {
    return plain(/** @type {import('onpolicy').OnpolicyError} */ (error));
  } finally {
    asked.delete(key);
    sender.off('destroyed', abort);
  }
});

const window = new BrowserWindow({ webPreferences: { preload: here('preload.cjs') } });
await window.loadFile(here('index.html'));
app.on('window-all-closed', () => app.quit());
app.on('will-quit', () => runtime.close());

/** Where models and the store lie: apps may not write beside their own files. */
function folders() {
  const data = app.getPath('userData');
  return { home: path.join(data, 'onpolicy'), hub: { folder: path.join(data, 'models') } };
}
