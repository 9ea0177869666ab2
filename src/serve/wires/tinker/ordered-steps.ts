/** Steps of a training run that arrive in any order -> steps sent to it in the order of their numbers. */
import { errorAt, OnpolicyError } from '../../../errors.ts';
import type { RunOperation, RunRequest, TrainingRunResult } from '../../../protocol/index.ts';
import type { CallOptions, TrainingRunsResource } from '../../../protocol/service/index.ts';

/** Milliseconds that a step waits for missing steps before it. */
const GAP_MS = 30_000;
/** Milliseconds of silence after which the run may have been closed, and opened again with its last saved state. */
const SILENCE_MS = 60_000;

/** The steps of one run. */
export class OrderedSteps {
  readonly #runs: TrainingRunsResource;
  readonly #id: string;
  /** Number of the next step of the client. */
  #next: number;
  /** Number of steps that the run has got. */
  #sent: number;
  #underWay = 0;
  #lastMs = performance.now();
  /** True if the run has to be asked for its number of steps. */
  #isUnsure = false;
  /** True if gradients wait for an optimizer step. */
  #hasGradients = false;
  readonly #waiting = new Map<number, () => void>();
  readonly #refused = new Set<number>();

  /** @param sequence number of steps that the run has */
  constructor(runs: TrainingRunsResource, id: string, sequence: number) {
    this.#runs = runs;
    this.#id = id;
    this.#next = sequence + 1;
    this.#sent = sequence;
  }

  /** Passes over a step whose request was refused, so that later steps do not wait for it. */
  refuse(number: number): void {
    if (number < this.#next) return;
    this.#refused.add(number);
    this.#advance(this.#next);
  }

  /** Sends a step when it is its turn. @throws OnpolicyError `CONFLICT` for a number that was used or whose predecessors do not come */
  async call(
    number: number,
    operation: RunOperation,
    request: RunRequest,
    options: CallOptions,
  ): Promise<TrainingRunResult> {
    await this.#turn(number);
    this.#underWay++;
    try {
      await this.#ask(options);
      this.#sent++;
      const given = { ...request, sequence: this.#sent, idempotency_key: `seq-${number}` };
      if (operation === 'forward_backward') this.#hasGradients = true;
      if (operation === 'optim_step' || operation === 'load_state') this.#hasGradients = false;
      const called = this.#runs.call(this.#id, operation, given, options);
      this.#advance(number + 1); // the run takes steps in the order of their numbers
      let reply = await called;
      while (reply.status === 'pending') reply = await this.#runs.result(reply.request_id, {}, options);
      return reply.result;
    } catch (error) {
      this.#isUnsure = true;
      this.#advance(number + 1);
      throw error;
    } finally {
      this.#underWay--;
      this.#lastMs = performance.now();
    }
  }

  /** Asks an idle run for the number of its steps. @throws OnpolicyError `CONFLICT` if it was closed and has lost gradients */
  async #ask(options: CallOptions): Promise<void> {
    const isSilent = performance.now() - this.#lastMs > SILENCE_MS;
    if (this.#underWay > 1 || !(isSilent || this.#isUnsure)) return;
    const { sequence } = await this.#runs.retrieve(this.#id, options);
    const isLost = sequence !== this.#sent && this.#hasGradients;
    this.#isUnsure = false;
    this.#sent = sequence;
    if (!isLost) return;
    this.#hasGradients = false;
    throw new OnpolicyError(
      'CONFLICT',
      'the run was closed, and the gradients that no optimizer step has used are lost',
    );
  }

  /** Waits until all steps before this one were sent. */
  async #turn(number: number): Promise<void> {
    if (number === this.#next) return;
    if (number > this.#next && !this.#waiting.has(number)) {
      let timer: NodeJS.Timeout | undefined;
      const isTurn = await new Promise<boolean>((resolve) => {
        this.#waiting.set(number, () => resolve(true));
        timer = setTimeout(() => resolve(false), GAP_MS).unref();
      });
      clearTimeout(timer);
      this.#waiting.delete(number);
      if (isTurn) return;
      this.refuse(number); // those before it may still come, and those after it
    }
    throw errorAt('seq_id', 'CONFLICT', `expected ${this.#next}, the next step of the model, got ${number}`);
  }

  #advance(next: number): void {
    this.#next = Math.max(this.#next, next);
    while (this.#refused.delete(this.#next)) this.#next++;
    this.#waiting.get(this.#next)?.();
  }
}
