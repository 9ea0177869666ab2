/** The requests and tokens of one client -> whether it may continue. The allowance of a minute refills steadily. */
import { setTimeout as sleep } from 'node:timers/promises';
import { OnpolicyError } from '../../../errors.ts';

/** Limits per minute of a client. Null means unlimited. */
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

  /** Returns the milliseconds until `wanted` is available, 0 if it is. */
  waitMs(wanted: number, nowMs: number): number {
    const refilled = ((nowMs - this.#atMs) * this.#perMinute) / MINUTE_MS;
    this.#left = Math.min(this.#perMinute, this.#left + refilled);
    this.#atMs = nowMs;
    return Math.max(0, ((wanted - this.#left) * MINUTE_MS) / this.#perMinute);
  }

  /** Amount at the last call of `waitMs`. */
  get left(): number {
    return this.#left;
  }

  /** Takes an amount. The rest may become negative and then has to refill first. */
  take(amount: number): void {
    this.#left -= amount;
  }
}

/** The tokens that a request may use. They are taken when it is admitted and corrected at its end. */
export type Reservation = {
  /** Counts tokens that were used. */
  readonly charge: (tokens: number) => void;
  /** Gives unused tokens back. Can be called twice. */
  readonly end: () => void;
};

/** The reservation of a client without a limit. */
export const UNLIMITED: Reservation = { charge: () => {}, end: () => {} };

export class ClientLimits {
  readonly #requests: Bucket | null;
  readonly #tokens: Bucket | null;
  readonly #tokensPerMinute: number;

  constructor({ requestsPerMinute, tokensPerMinute }: MinuteLimits, nowMs: number) {
    this.#requests = requestsPerMinute === null ? null : new Bucket(requestsPerMinute, nowMs);
    this.#tokens = tokensPerMinute === null ? null : new Bucket(tokensPerMinute, nowMs);
    this.#tokensPerMinute = tokensPerMinute ?? 0;
  }

  /** True if the client has a limit on tokens. */
  get hasTokens(): boolean {
    return this.#tokens !== null;
  }

  /** Counts a request. Throws `OVERLOADED` when the client has used up its requests or tokens. */
  begin(nowMs: number): void {
    const forRequest = this.#requests?.waitMs(1, nowMs) ?? 0;
    const forTokens = this.#tokens?.waitMs(1, nowMs) ?? 0;
    const retryAfterMs = Math.max(forRequest, forTokens);
    if (retryAfterMs > 0) throw usedUp(forRequest >= forTokens ? 'requests' : 'tokens', retryAfterMs);
    this.#requests?.take(1);
  }

  /**
   * Takes the tokens that a request may use, at most those of a whole minute. Throws `OVERLOADED` while there are too few.
   * @param need infinite if unknown: such a request takes all that are left
   * @param keep number of tokens that must be left for others
   */
  reserve(need: number, nowMs: number, keep = 0): Reservation {
    const tokens = this.#tokens;
    if (!tokens) return UNLIMITED;
    const most = this.#tokensPerMinute;
    const wanted = Number.isFinite(need) ? Math.max(1, need) : 1;
    const retryAfterMs = tokens.waitMs(Math.min(wanted + keep, most), nowMs);
    if (retryAfterMs > 0) throw usedUp('tokens', retryAfterMs);
    const taken = Number.isFinite(need) ? Math.min(need, most) : tokens.left - keep;
    tokens.take(taken);
    let used = 0;
    let isOver = false;
    return {
      charge: (count) => {
        const before = Math.max(used, taken);
        used += count;
        tokens.take(Math.max(used, taken) - before);
      },
      end: () => {
        if (!isOver) tokens.take(Math.min(0, used - taken));
        isOver = true;
      },
    };
  }

  /** Waits until there are enough tokens, and takes them. Leaves half of a minute's tokens to requests that do not wait. */
  async reserveLater(need: number, signal: AbortSignal): Promise<Reservation> {
    for (;;) {
      try {
        return this.reserve(need, performance.now(), this.#tokensPerMinute / 2);
      } catch (error) {
        const { retryAfterMs } = error as OnpolicyError;
        await sleep(Math.min(retryAfterMs! + 1, LONGEST_WAIT_MS), undefined, { signal, ref: false });
      }
    }
  }
}

/** Milliseconds after which a waiting request checks again, because others may have given tokens back. */
const LONGEST_WAIT_MS = 1000;

function usedUp(what: string, retryAfterMs: number): OnpolicyError {
  return new OnpolicyError('OVERLOADED', `this token has used up its ${what} of a minute`, { retryAfterMs });
}
