// @ts-check
/** Ratings of answers -> a better adapter, trained on this computer while nobody uses it; one step back at any time. */
import path from 'node:path';
import { readJson, writeJson } from './files.mjs';

/**
 * @typedef {{ role: 'user' | 'assistant', content: string }} Message
 * `messages` led to `answer`; `step` is the training that has used it.
 * @typedef {{ id: string, messages: Message[], answer: string, rating: number, step?: number }} Rating
 * `liked` is the share of good ratings among those that the step used; the same question before and after.
 * @typedef {{ step: number, at: number, ratings: number, liked: number, question: string, before: string, after: string }} Step
 */

/** A step is made of so many new ratings, and as many older good ones, which keep what was liked. */
const RATINGS_PER_STEP = 10;
const LEARNING_RATE = 1e-4;
const ANSWER_TOKENS = 200;

export class Learning {
  #runtime;
  #model;
  #file;
  #options;
  /** @type {Rating[]} */
  #ratings;
  /** @type {Step[]} */
  #steps;
  /** @type {AbortController | null} */
  #training = null;
  /** A step that was asked for goes on while somebody is here. */
  #isAskedFor = false;
  /** @type {string | null} */
  #problem = null;

  /**
   * @param {import('onpolicy').Runtime} runtime
   * @param {{ id: string, name: string }} model a registered model
   * @param {string} folder
   * @param {{ isIdle: () => boolean, changed: () => void, learningRate?: number | undefined }} options
   */
  constructor(runtime, model, folder, options) {
    this.#runtime = runtime;
    this.#model = model;
    this.#options = options;
    this.#file = path.join(folder, `learning-${model.name}.json`);
    const { ratings, steps } = readJson(this.#file, { ratings: [], steps: [] });
    this.#ratings = ratings;
    this.#steps = steps;
  }

  state() {
    const waiting = this.#ratings.filter(({ step }) => step === undefined).length;
    return {
      isTraining: this.#training !== null,
      waiting,
      needed: RATINGS_PER_STEP,
      ratings: this.#ratings.length,
      steps: this.#steps,
      problem: this.#problem,
    };
  }

  /** Keeps a rating; 0 takes it back. A rating that a step has used stays with that step. @param {Rating} rating */
  rate(rating) {
    const others = this.#ratings.filter(({ id, step }) => id !== rating.id || step !== undefined);
    const isUsed = others.some(({ id }) => id === rating.id);
    this.#ratings = rating.rating === 0 || isUsed ? others : [...others, rating];
    this.#save();
  }

  /** Call it every few seconds: starts a step when there is something to learn and nobody is here, and stops it otherwise. */
  tick() {
    const isIdle = this.#options.isIdle();
    if (!isIdle && !this.#isAskedFor) this.stop();
    if (isIdle && !this.#training && this.state().waiting >= RATINGS_PER_STEP) void this.#train();
  }

  /** Stops a step that runs; its ratings wait for the next one. */
  stop() {
    this.#training?.abort();
  }

  /** Trains on the ratings that wait, whoever is here. */
  async step() {
    this.#isAskedFor = true;
    await this.#train();
    this.#isAskedFor = false;
  }

  async #train() {
    if (this.#training) return;
    const fresh = this.#ratings.filter(({ step }) => step === undefined);
    const [last] = fresh.slice(-1);
    if (!last) return;
    const controller = new AbortController();
    const { signal } = controller;
    this.#training = controller;
    this.#options.changed();
    try {
      const before = await this.#answer(last.messages, signal);
      const used = [...fresh, ...this.#olderGoodOnes(fresh.length)];
      const job = await this.#runtime.train(
        {
          model_id: this.#model.id,
          trajectory_groups: used.map((rating) => ({ trajectories: [trajectoryOf(rating)] })),
          experimental_config: {
            preference_loss: 'kto',
            learning_rate: this.#options.learningRate ?? LEARNING_RATE,
            allow_training_without_logprobs: true,
          },
        },
        { signal },
      );
      const { step } = await job.done;
      // From here on the step is there: it is kept even if somebody comes back.
      for (const rating of fresh) rating.step = step;
      const liked = fresh.filter(({ rating }) => rating > 0).length / fresh.length;
      const question = last.messages.at(-1)?.content ?? '';
      const after = await this.#answer(last.messages).catch(() => '');
      this.#steps.push({ step, at: Date.now(), ratings: fresh.length, liked, question, before, after });
      this.#problem = null;
      this.#save();
    } catch (error) {
      if (!signal.aborted) this.#problem = /** @type {Error} */ (error).message;
    } finally {
      this.#training = null;
      this.#options.changed();
    }
  }

  /** Takes the last step back: its checkpoint is deleted, and its ratings are not used again. */
  async undo() {
    const last = this.#steps.at(-1);
    if (!last || this.#training) return;
    await this.#runtime.checkpoints.delete(this.#model.id, { steps: [last.step] });
    this.#steps.pop();
    this.#save();
  }

  /** @param {Message[]} messages @param {AbortSignal} [signal] */
  async #answer(messages, signal) {
    const request = { model: this.#model.name, messages, temperature: 0, max_tokens: ANSWER_TOKENS };
    const { choices } = await this.#runtime.createCompletion(
      request,
      signal ? { signal, background: true } : {},
    );
    return choices[0]?.message.content ?? '';
  }

  /** @param {number} count */
  #olderGoodOnes(count) {
    const steps = new Set(this.#steps.map(({ step }) => step));
    const good = this.#ratings.filter(
      ({ rating, step }) => rating > 0 && step !== undefined && steps.has(step),
    );
    for (let i = good.length - 1; i > 0; i--) {
      const other = Math.floor(Math.random() * (i + 1));
      [good[i], good[other]] = [/** @type {Rating} */ (good[other]), /** @type {Rating} */ (good[i])];
    }
    return good.slice(0, count);
  }

  #save() {
    writeJson(this.#file, { ratings: this.#ratings, steps: this.#steps });
    this.#options.changed();
  }
}

/** @param {Rating} rating */
function trajectoryOf({ messages, answer, rating }) {
  const message = { role: /** @type {const} */ ('assistant'), content: answer };
  const choice = { index: 0, finish_reason: /** @type {const} */ ('stop'), message };
  return { messages_and_choices: [...messages, choice], reward: rating };
}
