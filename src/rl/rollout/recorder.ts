/** A rollout's requests, by any client -> one trajectory with the ids and log-probabilities that were sampled. */
import { seedOf } from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';
import {
  checkArguments,
  type JsonObject,
  type RecorderOptions,
  type Trajectory,
} from '../../protocol/index.ts';
import type { Completions } from '../../protocol/service/index.ts';
import { createFetch } from '../../serve/http/index.ts';
import type { Exchange } from './exchange.ts';
import { historiesOf } from './histories.ts';
import { RecordedService } from './recorded-service.ts';
import { wrongInput } from './wrong-input.ts';

/** The result of a rollout. */
export type RecordingEnd = {
  /** A finite number. */
  readonly reward: number;
  /** Custom numbers, which training averages. */
  readonly metrics?: JsonObject | undefined;
  /** Any data to store with the trajectory. */
  readonly metadata?: JsonObject | undefined;
};

/**
 * Records a rollout on any service that returns token ids and log-probabilities: a runtime, a pool, or a server of this library or of vLLM.
 * `runtime.record` is the same for a runtime.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options
 */
export function record(service: Completions, options: RecorderOptions): Recorder {
  checkArguments('RecorderOptions', options);
  return new Recorder(service, options);
}

/** One recording, for one rollout. */
export class Recorder {
  /** Answers requests in process, as the recorded service does. */
  readonly service: Completions;
  /**
   * The same service for clients of OpenAI's API, in place of the global `fetch`. It opens no port. Any base URL that ends with `/v1` and
   * any API key work.
   */
  readonly fetch: typeof globalThis.fetch;
  readonly #begun: ((() => readonly Exchange[]) | null)[] = []; // in the order of the requests; null if not answered
  readonly #end = new AbortController();
  /** The step of a model that is recorded as `name@3`; null if unknown. */
  readonly #step: number | null;

  /** @internal Use `runtime.record` or `record`. */
  constructor(
    service: Completions,
    { model, seed, routedExperts = false, repetitionDetection }: RecorderOptions,
  ) {
    this.service = new RecordedService(service, {
      model,
      routedExperts,
      repetitionDetection,
      signal: this.#end.signal,
      begin: () => {
        this.#requireOpen();
        const place = this.#begun.push(null) - 1;
        return {
          seed: seed === undefined ? null : seedOf(seed, place),
          report: (read) => {
            this.#begun[place] = read;
          },
        };
      },
    });
    const [, step] = /@(\d+)$/.exec(model) ?? [];
    this.#step = step === undefined ? null : Number(step);
    this.fetch = createFetch(this.service, { models: [model] });
  }

  /**
   * Ends the recording. Running requests end with `CLOSED`. If a client left a stream early, the received part counts.
   * @throws OnpolicyError `INVALID_REQUEST` for a reward that is not finite; `CONFLICT` if no request was answered; `CLOSED` the second
   * time
   */
  finish({ reward, metrics, metadata }: RecordingEnd): Trajectory {
    this.#requireOpen();
    if (!Number.isFinite(reward)) throw wrongInput(['reward'], 'a finite number', reward);
    const exchanges = this.#begun
      .flatMap((read) => read?.() ?? [])
      .filter(({ choices }) => choices.length > 0);
    if (exchanges.length === 0)
      throw new OnpolicyError('CONFLICT', 'no request was answered during the recording');
    this.#end.abort(new OnpolicyError('CLOSED', 'the recording has ended'));
    const [first, ...others] = historiesOf(exchanges);
    return {
      ...first!,
      reward,
      ...(this.#step === null
        ? {}
        : { initial_policy_version: this.#step, final_policy_version: this.#step }),
      ...(others.length > 0 ? { additional_histories: others } : {}),
      ...(metrics ? { metrics } : {}),
      ...(metadata ? { metadata } : {}),
    };
  }

  #requireOpen(): void {
    if (this.#end.signal.aborted) throw new OnpolicyError('CLOSED', 'the recording has ended');
  }
}
