// @ts-check
/** The models to choose from: which fit this computer, which are here; download with pause, and deletion. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { readJson, writeJson } from './files.mjs';

/**
 * `memory` and `gigabytes` in GB; `learningRate`: larger models take smaller steps.
 * @typedef {{ id: string, name: string, reference: string, gigabytes: number, memory: number, about: string, learningRate?: number }} Entry
 * @typedef {{ state: 'absent' | 'here' | 'downloading' | 'paused' | 'failed', fraction: number, error?: string }} Download
 */

/** The share of this computer's memory that a model may take beside other programs. */
const SHARE = 0.6;
const GB = 1e9;

export class Models {
  /** @type {Entry[]} */
  #entries;
  #runtime;
  #file;
  #changed;
  /** The paths of downloaded files by id. @type {Record<string, string[]>} */
  #files;
  /** @type {Map<string, Download>} */
  #downloads = new Map();
  /** @type {Map<string, AbortController>} */
  #running = new Map();

  /**
   * @param {import('onpolicy').Runtime} runtime
   * @param {Entry[]} entries
   * @param {string} folder
   * @param {() => void} changed called when a state changes
   */
  constructor(runtime, entries, folder, changed) {
    this.#runtime = runtime;
    this.#entries = entries;
    this.#file = path.join(folder, 'models.json');
    this.#files = readJson(this.#file, {});
    this.#changed = changed;
  }

  list(memory = os.totalmem() / GB) {
    return this.#entries.map((entry) => ({
      ...entry,
      fits: entry.memory <= memory * SHARE,
      ...this.#stateOf(entry),
    }));
  }

  /** @param {string} id */
  entry(id) {
    const entry = this.#entries.find((one) => one.id === id);
    if (!entry) throw new Error(`no model in the list: ${id}`);
    return entry;
  }

  /** @param {string} id */
  isHere(id) {
    return this.#stateOf(this.entry(id)).state === 'here';
  }

  /** Downloads a model, or goes on with it. Ends when it is here, paused or failed. @param {string} id */
  async download(id) {
    if (this.#running.has(id)) return;
    const entry = this.entry(id);
    const controller = new AbortController();
    this.#running.set(id, controller);
    this.#set(id, { state: 'downloading', fraction: this.#downloads.get(id)?.fraction ?? 0 });
    try {
      const file = await this.#runtime.download(entry.reference, { signal: controller.signal });
      this.#files = { ...this.#files, [id]: [file] };
      writeJson(this.#file, this.#files);
      this.#set(id, { state: 'here', fraction: 1 });
    } catch (error) {
      const fraction = this.#downloads.get(id)?.fraction ?? 0;
      const paused = controller.signal.aborted;
      const { message } = /** @type {Error} */ (error);
      this.#set(id, paused ? { state: 'paused', fraction } : { state: 'failed', fraction, error: message });
    } finally {
      this.#running.delete(id);
    }
  }

  /** Pauses a download. The part that was received stays on disk. @param {string} id */
  pause(id) {
    this.#running.get(id)?.abort();
  }

  /** Deletes the file of a model. @param {string} id */
  async remove(id) {
    this.pause(id);
    await this.#runtime.unload(this.entry(id).reference).catch(() => {});
    for (const file of this.#files[id] ?? []) fs.rmSync(file, { force: true });
    const { [id]: _, ...others } = this.#files;
    this.#files = others;
    writeJson(this.#file, others);
    this.#set(id, { state: 'absent', fraction: 0 });
  }

  /** Shows the progress of a download, as the runtime reports it. @param {string} reference @param {number} fraction */
  progress(reference, fraction) {
    const entry = this.#entries.find((one) => one.reference === reference);
    if (entry && this.#running.has(entry.id)) this.#set(entry.id, { state: 'downloading', fraction });
  }

  /** @param {Entry} entry @returns {Download} */
  #stateOf(entry) {
    const isFile = entry.gigabytes === 0 || this.#files[entry.id]?.every((file) => fs.existsSync(file));
    if (isFile) return { state: 'here', fraction: 1 };
    return this.#downloads.get(entry.id) ?? { state: 'absent', fraction: 0 };
  }

  /** @param {string} id @param {Download} download */
  #set(id, download) {
    this.#downloads.set(id, download);
    this.#changed();
  }
}
