// @ts-check
/** The methods of the window, without Electron: conversations, models, ratings. Each method takes and returns plain data. */
import fs from 'node:fs';
import path from 'node:path';
import { createRuntime, fitMessages } from 'onpolicy';
import { Conversations } from './conversations.mjs';
import { readJson, writeJson } from './files.mjs';
import { Learning } from './learning.mjs';
import { Models } from './models.mjs';
import { TOPICS, Topics } from './topics.mjs';

/**
 * @typedef {import('./conversations.mjs').Conversation} Conversation
 * A part of the answer that was asked for with `key`: a chunk, or its end. `dropped` is the number of messages that did not fit.
 * @typedef {{ key: string, chunk: import('onpolicy').ChatCompletionChunk } | { key: string, end: { error: string | null, dropped: number } }} AnswerPart
 * `event` is `state` (everything that is shown beside a conversation) or `answer` (an {@link AnswerPart}).
 * @typedef {(event: 'state' | 'answer', value: unknown) => void} Notify
 */

const LOOK_MS = 2000;
/** The share of the context that is kept for an answer. */
const ANSWER_SHARE = 0.5;
/** Fields that ask for usage, progress and times, which the window shows. */
const REPORTS = /** @type {const} */ ({
  stream_options: { include_usage: true },
  return_progress: true,
  return_timings: true,
});

export class Assistant {
  /** Names of the methods that a window may call. */
  static METHODS = /** @type {const} */ ([
    ...['state', 'open', 'create', 'remove', 'save', 'ask', 'stop', 'rate', 'file'],
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

  /** Keeps the turns of a conversation. @param {string} id @param {import('./conversations.mjs').Turn[]} turns */
  save(id, turns) {
    this.#conversations.save({ ...this.#conversations.read(id), turns });
    this.#changed();
  }

  /**
   * Answers messages of a conversation. Chunks of the answer, and its end, are told as `answer`. The oldest turns are left out when the
   * context is full.
   * @param {string} key names the answer
   * @param {string} id the conversation, which gets a topic
   * @param {import('onpolicy').Message[]} messages
   */
  async ask(key, id, messages) {
    this.#learning?.stop(); // somebody is here
    this.#topics?.stop();
    this.#asking?.abort();
    const controller = new AbortController();
    const { signal } = controller;
    this.#asking = controller;
    let dropped = 0;
    let error = null;
    try {
      const { name } = this.#models.entry(this.#settings.model);
      const model = nameOf(this.#settings.model);
      const max_tokens = Math.floor(ANSWER_SHARE * (await this.#runtime.contextSize(model)));
      const request = { model, max_tokens, messages };
      const fitted = await fitMessages(this.#runtime, request, { signal });
      dropped = fitted.dropped.length;
      const streamed = {
        ...request,
        ...REPORTS,
        messages: fitted.messages,
        stream: /** @type {const} */ (true),
      };
      for await (const chunk of await this.#runtime.createCompletion(streamed, { signal }))
        this.#notify('answer', { key, chunk: { ...chunk, model: name } });
    } catch (cause) {
      if (!signal.aborted) error = said(cause);
    }
    if (this.#asking === controller) this.#asking = null;
    this.#notify('answer', { key, end: { error, dropped } });
    if (error === null) await this.#findTopic(id);
  }

  stop() {
    this.#asking?.abort();
  }

  /** Likes (1) or dislikes (-1) an answer, or takes that back (0). @param {import('./learning.mjs').Rating} rating */
  rate({ id, messages, answer, rating }) {
    this.#learning?.rate({ id, messages, answer, rating });
  }

  /** Files a conversation under another topic, from which topics of others are learned. @param {string} id @param {string} topic */
  file(id, topic) {
    const conversation = this.#conversations.read(id);
    if (!TOPICS.includes(topic) || conversation.turns.length === 0) return;
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

  /** Decides the topic of a conversation that has none. @param {string} id */
  async #findTopic(id) {
    const isOpen = () => this.#conversations.read(id).turns.length > 0 && !this.#conversations.read(id).topic;
    if (!isOpen()) return;
    const topic = await this.#topics?.of(textOf(this.#conversations.read(id))).catch(() => undefined);
    if (!isOpen()) return; // deleted, or corrected meanwhile
    this.#conversations.save({ ...this.#conversations.read(id), topic });
    this.#changed();
  }

  #changed() {
    this.#notify('state', this.state());
  }
}

/** Returns the first question of a conversation. @param {Conversation} conversation */
function textOf({ turns }) {
  return turns[0]?.text ?? '';
}

/** The name under which a model of the list learns. @param {string} id */
function nameOf(id) {
  return `app-${id}`;
}

/** @param {unknown} error */
function said(error) {
  return /** @type {Error} */ (error).message;
}
