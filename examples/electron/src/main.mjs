// @ts-check
/** The main process: one instance, its window, and what goes between the window and the assistant. */
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { app, BrowserWindow, ipcMain, powerMonitor, shell } from 'electron';
import { Assistant } from './assistant.mjs';

/** The app learns when nobody has touched the computer for so long, and not on battery. */
const IDLE_SECONDS = Number(process.env['IDLE_SECONDS'] ?? 60);
const here = (/** @type {string} */ name) => fileURLToPath(new URL(name, import.meta.url));

if (!app.requestSingleInstanceLock())
  app.quit(); // the other one shows its window
else await run();

async function run() {
  app.on('second-instance', showWindow);
  app.on('activate', showWindow); // macOS: a click on the icon in the dock
  app.on('window-all-closed', () => {
    if (process.platform !== 'darwin') app.quit();
  });
  await app.whenReady();

  const entries = JSON.parse(fs.readFileSync(here('catalog.json'), 'utf8'));
  const own = process.env['MODEL'];
  if (own)
    entries.unshift({ id: 'own', name: 'Own file', reference: own, gigabytes: 0, memory: 0, about: own });
  const assistant = await Assistant.open({
    folder: app.getPath('userData'),
    entries,
    isIdle: () => powerMonitor.getSystemIdleTime() >= IDLE_SECONDS && !powerMonitor.isOnBatteryPower(),
    notify: (event, value) => {
      for (const window of BrowserWindow.getAllWindows()) window.webContents.send(event, value);
    },
  });
  for (const method of Assistant.METHODS)
    ipcMain.handle(method, async (_, /** @type {any[]} */ ...args) => {
      const result = await /** @type {Function} */ (assistant[method]).apply(assistant, args);
      if (method === 'report') await shell.openPath(result);
      return result;
    });

  let isClosed = false;
  app.on('will-quit', (event) => {
    if (isClosed) return;
    event.preventDefault(); // until the model's process has ended
    void assistant.close().finally(() => {
      isClosed = true;
      app.quit();
    });
  });
  showWindow();
}

function showWindow() {
  const [window] = BrowserWindow.getAllWindows();
  if (window) {
    if (window.isMinimized()) window.restore();
    window.focus();
    return;
  }
  const made = new BrowserWindow({
    width: 1100,
    height: 760,
    webPreferences: { preload: here('preload.cjs') },
  });
  void made.loadFile(here('page/index.html'));
}
