/** Time limits -> calls at their time, on a fake clock. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { limitTime } from '../../../src/serve/http/time-limits.ts';

describe('time limits', () => {
  beforeEach(() => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
  afterEach(() => vi.useRealTimers());

  it('call each that is late at its time, and none that was stopped', () => {
    const startMs = performance.now();
    const lateMs: number[] = [];
    const start = (): (() => void) => limitTime(60, () => lateMs.push(performance.now() - startMs));
    start();
    const stop = start();
    vi.advanceTimersByTime(30);
    start();
    stop();
    vi.advanceTimersByTime(120);
    expect(lateMs).toEqual([60, 90]);
  });

  it('do not mix lengths', () => {
    const late: string[] = [];
    const stopLong = limitTime(60_000, () => late.push('long'));
    limitTime(10, () => late.push('short'));
    vi.advanceTimersByTime(59_999);
    stopLong();
    vi.advanceTimersByTime(60_000);
    expect(late).toEqual(['short']);
  });

  it('begin anew after all have ended', () => {
    const late: number[] = [];
    for (const round of [1, 2]) {
      limitTime(20, () => late.push(round));
      vi.advanceTimersByTime(20);
    }
    expect(late).toEqual([1, 2]);
  });

  it('can be longer than a timer', () => {
    const late: number[] = [];
    limitTime(2 ** 31 + 5, () => late.push(1));
    vi.advanceTimersByTime(2 ** 31 + 4);
    expect(late).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(late).toEqual([1]);
  });
});
