/** Requests that arrived for a model and have not ended -> whether there is room for one more, decided before a request is read. */
import { lease } from '../common/index.ts';
import { OnpolicyError } from '../errors.ts';
import type { ModelOptions } from '../protocol/index.ts';
import type { NamedModels } from './named-models.ts';
import type { ServingOptions } from './serving-options.ts';

/** Counts the requests of a runtime by the model that they name. */
export class Admission {
  readonly #names: NamedModels;
  readonly #serving: ServingOptions;
  readonly #counts = new Map<ModelOptions | string, number>();

  constructor(names: NamedModels, serving: ServingOptions) {
    this.#names = names;
    this.#serving = serving;
  }

  /**
   * Throws `OVERLOADED` if the queue of a request's model is full, before the request is read. Several names of one file are counted apart
   * here, and together once the model is known.
   */
  requireRoom(reference: string | null): void {
    const users = this.#counts.get(this.#names.keyOf(reference)) ?? 0;
    const name = reference || this.#names.fallbackName;
    requireRoom(name, users, this.#names.find(reference), this.#serving);
  }

  /** Counts a request until its lease ends. */
  arrive(reference: string | null): Disposable {
    const key = this.#names.keyOf(reference);
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    return lease(() => {
      const left = this.#counts.get(key)! - 1;
      if (left > 0) this.#counts.set(key, left);
      else this.#counts.delete(key);
    });
  }
}

/** Throws `OVERLOADED` if the queue for `name` is full. `users` is the number of requests that run or wait. */
export function requireRoom(
  name: string,
  users: number,
  own: Pick<ModelOptions, 'maxWaiting' | 'maxSequences'>,
  serving: Pick<ServingOptions, 'maxWaiting' | 'maxSequences'>,
): void {
  const maxWaiting = own.maxWaiting ?? serving.maxWaiting;
  const maxSequences = own.maxSequences ?? serving.maxSequences;
  if (maxWaiting === null || users < maxSequences + maxWaiting) return;
  const message = `${users - maxSequences} requests wait for ${name}, and ${maxWaiting} may`;
  throw new OnpolicyError('OVERLOADED', message, { retryAfterMs: 1000 });
}
