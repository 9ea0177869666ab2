// @ts-check
/** The methods of the window, without Electron: conversations, models, ratings. Each method takes and returns plain data. */
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { createRuntime } from 'onpolicy';
import { Conversations } from './conversations.mjs';
import { readJson, writeJson } from './files.mjs';
import { Learning } from './learning.mjs';
import { Models } from './models.mjs';
import { TOPICS, Topics } from './topics.mjs';

/**
 * @typedef {import('./conversations.mjs').Conversation} Conversation
 * `event` is `state` (everything that is shown beside a conversation) or `text` (more of an answer).
 * @typedef {(event: 'state' | 'text', value: unknown) => void} Notify
 */

const LOOK_MS = 2000;
/** At most so much of the context is kept for an answer. */
const ANSWER_SHARE = 0.5;
const ANSWER_TOKENS = 1024;

export class Assistant {
  /** Names of the methods that a window may call. */
  static METHODS = /** @type {const} */ ([
    ...['state', 'open', 'create', 'remove', 'ask', 'stop', 'rate', 'file'],
    ...['choose', 'download', 'pause', 'removeModel', 'learn', 'undo', 'report'],
  ]);

  #folder;
  #notify;
  #isIdle;
  #conversations;
  #runtime;
  #models;
  #settings;
  /** @type {Learning | null} */
  #learning = null;
  /** @type {Topics | null} */
  #topics = null;
  /** @type {AbortController | null} */
  #asking = null;
  /** @type {string | null} */
  #problem = null;
  #timer;

  /**
   * @param {{ folder: string, entries: import('./models.mjs').Entry[], isIdle: () => boolean, notify: Notify }} options
   * @returns {Promise<Assistant>}
   */
  static async open({ folder, entries, isIdle, notify }) {
    /** @type {Models | undefined} */
    let models;
    const runtime = await createRuntime({
      isolate: true, // a native fault ends that process, which starts again, and not the app
      home: path.join(folder, 'onpolicy'), // an app may not write beside its own files
      hub: { folder: path.join(folder, 'models') },
      onProgress: (reference, fraction, phase) => {
        if (phase === 'download') models?.progress(reference, fraction);
      },
    });
    const assistant = new Assistant(folder, runtime, isIdle, notify, (changed) => {
      models = new Models(runtime, entries, folder, changed);
      return models;
    });
    await assistant.#use(assistant.#settings.model);
    return assistant;
  }

  /**
   * @param {string} folder
   * @param {import('onpolicy').Runtime} runtime
   * @param {() => boolean} isIdle
   * @param {Notify} notify
   * @param {(changed: () => void) => Models} makeModels
   */
  constructor(folder, runtime, isIdle, notify, makeModels) {
    this.#folder = folder;
    this.#runtime = runtime;
    this.#isIdle = isIdle;
    this.#notify = notify;
    this.#conversations = new Conversations(path.join(folder, 'conversations'));
    this.#models = makeModels(() => this.#changed());
    const first = this.#models.list()[0]?.id ?? '';
    this.#settings = { model: first, ...readJson(this.#settingsFile, {}) };
    this.#timer = setInterval(() => {
      this.#learning?.tick();
      this.#topics?.tick();
    }, LOOK_MS);
  }

  state() {
    return {
      conversations: this.#conversations.list(),
      models: this.#models.list(),
      model: this.#settings.model,
      topics: TOPICS,
      learning: this.#learning?.state() ?? null,
      problem: this.#problem,
    };
  }

  /** @param {string} id */
  open(id) {
    return this.#conversations.read(id);
  }

  create() {
    return this.#conversations.create();
  }

  /** @param {string} id */
  remove(id) {
    this.#conversations.delete(id);
    this.#changed();
  }

  /**
   * Asks, and returns the conversation with the answer, or with as much of it as came. Its text is told while it comes.
   * @param {string} id @param {string} content
   * @returns {Promise<{ conversation: Conversation, error: string | null }>}
   */
  async ask(id, content) {
    this.#learning?.stop(); // somebody is here
    this.#topics?.stop();
    this.#asking?.abort();
    const controller = new AbortController();
    this.#asking = controller;
    const conversation = this.#conversations.read(id);
    conversation.messages.push({ role: 'user', content });
    this.#conversations.save(conversation);
    this.#changed();
    let answer = '';
    let error = null;
    try {
      const messages = conversation.messages.map(({ role, content }) => ({ role, content }));
      for await (const { text, read } of this.#stream(messages, controller.signal)) {
        answer += text;
        this.#notify('text', { id, answer, read });
      }
    } catch (cause) {
      if (!controller.signal.aborted) error = said(cause);
    }
    if (this.#asking === controller) this.#asking = null;
    if (answer !== '') {
      const { name } = this.#models.entry(this.#settings.model);
      conversation.messages.push({ role: 'assistant', content: answer, id: randomUUID(), model: name });
      conversation.topic ??= await this.#topics?.of(textOf(conversation)).catch(() => undefined);
      this.#conversations.save(conversation);
    }
    this.#changed();
    return { conversation, error };
  }

  stop() {
    this.#asking?.abort();
  }

  /** Likes (1) or dislikes (-1) an answer, or takes that back (0). @param {string} id @param {string} answerId @param {number} rating */
  rate(id, answerId, rating) {
    const conversation = this.#conversations.read(id);
    const at = conversation.messages.findIndex((message) => message.id === answerId);
    const answer = conversation.messages[at];
    if (!answer) return conversation;
    answer.rating = rating;
    this.#conversations.save(conversation);
    const messages = conversation.messages.slice(0, at).map(({ role, content }) => ({ role, content }));
    this.#learning?.rate({ id: answerId, messages, answer: answer.content, rating });
    return conversation;
  }

  /** Files a conversation under another topic, from which topics of others are learned. @param {string} id @param {string} topic */
  file(id, topic) {
    const conversation = this.#conversations.read(id);
    if (!TOPICS.includes(topic) || conversation.messages.length === 0) return;
    this.#conversations.save({ ...conversation, topic });
    this.#topics?.correct(textOf(conversation), topic);
    this.#changed();
  }

  /** @param {string} id */
  async choose(id) {
    if (!this.#models.isHere(id)) return;
    this.#settings = { ...this.#settings, model: id };
    writeJson(this.#settingsFile, this.#settings);
    await this.#use(id);
  }

  /** @param {string} id */
  async download(id) {
    await this.#models.download(id);
  }

  /** @param {string} id */
  pause(id) {
    this.#models.pause(id);
  }

  /** @param {string} id */
  async removeModel(id) {
    const [first] = this.#models.list();
    if (id === this.#settings.model && first) await this.choose(first.id);
    await this.#models.remove(id);
  }

  /** Learns now, without waiting for an idle computer. */
  async learn() {
    await this.#learning?.step();
  }

  async undo() {
    await this.#learning?.undo();
  }

  /** Writes the page with the curves of all steps, and returns its file. */
  async report() {
    const file = path.join(this.#folder, 'report.html');
    fs.writeFileSync(file, await this.#runtime.report(nameOf(this.#settings.model)));
    return file;
  }

  async close() {
    clearInterval(this.#timer);
    this.#learning?.stop();
    this.#topics?.stop();
    this.#asking?.abort();
    await this.#runtime.close();
  }

  get #settingsFile() {
    return path.join(this.#folder, 'settings.json');
  }

  /** Answers and learns with a model of the list from now on. @param {string} id */
  async #use(id) {
    this.#learning?.stop();
    this.#topics?.stop();
    try {
      const { reference, learningRate } = this.#models.entry(id);
      const model = await this.#runtime.models.create({
        base_model: reference,
        name: nameOf(id),
        return_existing: true,
      });
      const options = {
        isIdle: () => !this.#asking && this.#isIdle(),
        changed: () => this.#changed(),
        learningRate,
      };
      this.#learning = new Learning(this.#runtime, { id: model.id, name: nameOf(id) }, this.#folder, options);
      const name = `${nameOf(id)}-topics`;
      const filing = await this.#runtime.models.create({
        base_model: reference,
        name,
        return_existing: true,
      });
      this.#topics = new Topics(this.#runtime, { id: filing.id, name }, this.#folder, options);
      this.#problem = null;
    } catch (error) {
      this.#learning = null;
      this.#topics = null;
      this.#problem = said(error);
    }
    this.#changed();
  }

  /**
   * Yields the pieces of an answer; before them, the share of the prompt that is read. The oldest turns are left out when the context is full.
   * @param {{ role: 'user' | 'assistant', content: string }[]} messages @param {AbortSignal} signal
   */
  async *#stream(messages, signal) {
    const model = nameOf(this.#settings.model);
    const room = Math.floor(ANSWER_SHARE * (await this.#runtime.contextSize(model)));
    const request = {
      model,
      max_tokens: Math.min(ANSWER_TOKENS, room),
      stream: /** @type {const} */ (true),
      return_progress: true,
    };
    for (let from = 0; ; from += 2) {
      try {
        const left = { ...request, messages: messages.slice(from) };
        for await (const { choices, prompt_progress: progress } of await this.#runtime.createCompletion(
          left,
          {
            signal,
          },
        ))
          yield {
            text: choices[0]?.delta.content ?? '',
            read: progress ? progress.processed / progress.total : null,
          };
        return;
      } catch (error) {
        const { code } = /** @type {import('onpolicy').OnpolicyError} */ (error);
        if (code !== 'CONTEXT_OVERFLOW' || from + 2 >= messages.length) throw error;
      }
    }
  }

  #changed() {
    this.#notify('state', this.state());
  }
}

/** Returns the first message of the user. @param {Conversation} conversation */
function textOf({ messages }) {
  return messages[0]?.content ?? '';
}

/** The name under which a model of the list learns. @param {string} id */
function nameOf(id) {
  return `app-${id}`;
}

/** @param {unknown} error */
function said(error) {
  return /** @type {Error} */ (error).message;
}
