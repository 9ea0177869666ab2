/** The requests and tokens of one client -> whether it may continue. What it may do in a minute refills steadily. */
import { OnpolicyError } from '../../errors.ts';

/** What a client may do in a minute; null: no limit. */
export type MinuteLimits = {
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
};

const MINUTE_MS = 60_000;

/** An amount that refills up to a minute's worth. */
class Bucket {
  readonly #perMinute: number;
  #left: number;
  #atMs: number;

  constructor(perMinute: number, nowMs: number) {
    this.#perMinute = perMinute;
    this.#left = perMinute;
    this.#atMs = nowMs;
  }

  /** Milliseconds until there is so much; 0: there is. */
  waitMs(wanted: number, nowMs: number): number {
    const refilled = ((nowMs - this.#atMs) * this.#perMinute) / MINUTE_MS;
    this.#left = Math.min(this.#perMinute, this.#left + refilled);
    this.#atMs = nowMs;
    return Math.max(0, ((wanted - this.#left) * MINUTE_MS) / this.#perMinute);
  }

  /** May leave a debt, which refilling pays first. */
  take(amount: number): void {
    this.#left -= amount;
  }
}

export class ClientLimits {
  readonly #requests: Bucket | null;
  readonly #tokens: Bucket | null;

  constructor({ requestsPerMinute, tokensPerMinute }: MinuteLimits, nowMs: number) {
    this.#requests = requestsPerMinute === null ? null : new Bucket(requestsPerMinute, nowMs);
    this.#tokens = tokensPerMinute === null ? null : new Bucket(tokensPerMinute, nowMs);
  }

  /** Whether there is a limit on tokens. */
  get hasTokens(): boolean {
    return this.#tokens !== null;
  }

  /** Counts a request. Throws `OVERLOADED` when the client has used up its requests or tokens. */
  begin(nowMs: number): void {
    const forRequest = this.#requests?.waitMs(1, nowMs) ?? 0;
    const forTokens = this.#tokens?.waitMs(1, nowMs) ?? 0;
    const retryAfterMs = Math.max(forRequest, forTokens);
    if (retryAfterMs > 0) {
      const what = forRequest >= forTokens ? 'requests' : 'tokens';
      const message = `this token has used up its ${what} of a minute`;
      throw new OnpolicyError('OVERLOADED', message, { retryAfterMs });
    }
    this.#requests?.take(1);
  }

  /** Counts the tokens of a prompt or an answer. */
  charge(tokens: number): void {
    this.#tokens?.take(tokens);
  }
}
