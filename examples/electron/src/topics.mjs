// @ts-check
/** Conversations -> their topics, decided by the model and corrected by the user. Corrections are learned while the computer is idle. */
import path from 'node:path';
import { learnDecisions } from 'onpolicy/rl';
import { readJson, writeJson } from './files.mjs';

export const TOPICS = ['work', 'home', 'learning', 'other'];
/** Number of new corrections after which the model learns. */
const CORRECTIONS_PER_STEP = 30;

/** @typedef {import('onpolicy/rl').DecisionExample} Correction */

export class Topics {
  #runtime;
  #model;
  #file;
  #options;
  /** @type {Correction[]} */
  #corrections;
  #learned; // number of corrections at the end of the last learning
  /** @type {AbortController | null} */
  #training = null;

  /**
   * @param {import('onpolicy').Runtime} runtime
   * @param {{ id: string, name: string }} model a registered model, beside the one that learns from ratings
   * @param {string} folder
   * @param {{ isIdle: () => boolean, learningRate?: number | undefined }} options
   */
  constructor(runtime, model, folder, options) {
    this.#runtime = runtime;
    this.#model = model;
    this.#options = options;
    this.#file = path.join(folder, `topics-${model.name}.json`);
    const { corrections, learned } = readJson(this.#file, { corrections: [], learned: 0 });
    this.#corrections = corrections;
    this.#learned = learned;
  }

  /** Returns the likeliest topic of a text. @param {string} text */
  async of(text) {
    const { answers } = await this.#runtime.decide({ model: this.#model.name, ...asked(text) });
    return String(answers[0].choice);
  }

  /** Saves the right topic of a text. @param {string} text @param {string} topic */
  correct(text, topic) {
    const others = this.#corrections.filter(({ input }) => input !== text);
    this.#corrections = [...others, { ...asked(text), answers: [topic] }];
    this.#save();
  }

  /** Call it every few seconds. Learns when there are enough new corrections and the computer is idle. Stops learning when it is used. */
  tick() {
    if (!this.#options.isIdle()) this.#training?.abort();
    else if (this.#corrections.length - this.#learned >= CORRECTIONS_PER_STEP)
      void this.learn().catch(() => {});
  }

  /** Learns all corrections. Returns the result with its measurements, or null if it is learning already. */
  async learn() {
    if (this.#training) return null;
    this.#training = new AbortController();
    try {
      const { signal } = this.#training;
      const { learningRate = 1e-4 } = this.#options;
      const examples = this.#corrections;
      const options = { service: this.#runtime, model: this.#model.id, examples, learningRate, signal };
      const learned = await learnDecisions(options);
      this.#learned = examples.length;
      this.#save();
      return learned;
    } finally {
      this.#training = null;
    }
  }

  stop() {
    this.#training?.abort();
  }

  #save() {
    writeJson(this.#file, { corrections: this.#corrections, learned: this.#learned });
  }
}

/** @param {string} text */
function asked(text) {
  const choices = TOPICS.map((value) => ({ value }));
  const type = /** @type {const} */ ('choice');
  return {
    input: text,
    questions: /** @type {const} */ ([{ type, instructions: 'What is it about?', choices }]),
  };
}
