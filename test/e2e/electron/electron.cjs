// Stands in for the module `electron`: main process and window are one process here. What crosses between them is cloned, as there.
const { EventEmitter } = require('node:events');
const fs = require('node:fs');
const { pathToFileURL } = require('node:url');

const handlers = new Map();
const windows = [];

const app = Object.assign(new EventEmitter(), {
  whenReady: async () => {},
  getPath: () => process.env.USER_DATA,
  requestSingleInstanceLock: () => process.env.OTHER_INSTANCE === undefined,
  quit: () => app.emit('will-quit', { preventDefault: () => {} }),
});

const powerMonitor = { getSystemIdleTime: () => 0, isOnBatteryPower: () => false };
const shell = { openPath: async (file) => fs.accessSync(file) };

const ipcMain = Object.assign(new EventEmitter(), {
  handle: (channel, handler) => handlers.set(channel, handler),
});

const ipcRenderer = Object.assign(new EventEmitter(), {
  send: (channel, ...words) =>
    void ipcMain.emit(channel, { sender: windows[0].webContents }, ...structuredClone(words)),
  invoke: async (channel, ...words) =>
    structuredClone(
      await handlers.get(channel)({ sender: windows[0].webContents }, ...structuredClone(words)),
    ),
});

const contextBridge = { exposeInMainWorld: (name, value) => Object.assign(globalThis, { [name]: value }) };

class BrowserWindow {
  static getAllWindows() {
    return windows;
  }

  webContents = Object.assign(new EventEmitter(), {
    id: 1,
    isDestroyed: () => false,
    send: (channel, ...words) => void ipcRenderer.emit(channel, {}, ...structuredClone(words)),
  });

  isMinimized() {
    return false;
  }

  focus() {
    globalThis.focused = (globalThis.focused ?? 0) + 1;
  }

  constructor({ webPreferences }) {
    windows.push(this);
    this.preload = webPreferences.preload;
  }

  /** Runs the preload script, then what stands in for the page. */
  async loadFile(file) {
    fs.accessSync(file);
    require(this.preload);
    await import(pathToFileURL(process.env.WINDOW_PROGRAM).href);
  }
}

globalThis.app = app; // for what stands in for the page
module.exports = { app, BrowserWindow, contextBridge, ipcMain, ipcRenderer, powerMonitor, shell };
