// @ts-check
/** Conversations, one file each: a title and its turns, as the window shows them. */
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { readJson, writeJson } from './files.mjs';

/**
 * Further fields are those of the window.
 * @typedef {{ role: 'user' | 'assistant', text: string }} Turn
 * @typedef {{ id: string, title: string, changed: number, turns: Turn[], topic?: string | undefined }} Conversation
 */

const TITLE_LENGTH = 40;

export class Conversations {
  #folder;

  /** @param {string} folder */
  constructor(folder) {
    this.#folder = folder;
    fs.mkdirSync(folder, { recursive: true });
  }

  /** Without their messages, newest first. */
  list() {
    return fs
      .readdirSync(this.#folder)
      .filter((name) => name.endsWith('.json'))
      .map((name) => this.read(name.slice(0, -'.json'.length)))
      .map(({ id, title, changed, topic }) => ({ id, title, changed, topic }))
      .sort((a, b) => b.changed - a.changed);
  }

  /** @returns {Conversation} */
  create() {
    return { id: randomUUID(), title: 'New conversation', changed: Date.now(), turns: [] };
  }

  /** A conversation; a new one if there is none of this id. @param {string} id @returns {Conversation} */
  read(id) {
    return readJson(this.#file(id), { ...this.create(), id });
  }

  /** @param {Conversation} conversation */
  save(conversation) {
    const first = conversation.turns[0]?.text ?? conversation.title;
    const title = first.length > TITLE_LENGTH ? `${first.slice(0, TITLE_LENGTH)}…` : first;
    writeJson(this.#file(conversation.id), { ...conversation, title, changed: Date.now() });
  }

  /** @param {string} id */
  delete(id) {
    fs.rmSync(this.#file(id), { force: true });
  }

  /** @param {string} id */
  #file(id) {
    if (!/^[\w-]+$/.test(id)) throw new Error(`no id of a conversation: ${id}`);
    return path.join(this.#folder, `${id}.json`);
  }
}
