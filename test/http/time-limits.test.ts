import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { limitTime } from '../../src/http/time-limits.ts';

describe('time limits', () => {
  it('tell each that is late, none before its time, and none that was stopped', async () => {
    const startMs = performance.now();
    const lateMs: number[] = [];
    const start = (): (() => void) => limitTime(60, () => lateMs.push(performance.now() - startMs));
    start();
    const stop = start();
    await sleep(30);
    start();
    stop();
    await sleep(120);
    expect(lateMs).toHaveLength(2);
    expect(lateMs[0]).toBeGreaterThanOrEqual(60);
    expect(lateMs[1]).toBeGreaterThanOrEqual(89);
  });

  it('do not mix lengths', async () => {
    const late: string[] = [];
    const stopLong = limitTime(60_000, () => late.push('long'));
    limitTime(10, () => late.push('short'));
    limitTime(2 ** 40, () => late.push('for ever'))();
    await sleep(50);
    stopLong();
    expect(late).toEqual(['short']);
  });

  it('begin anew after all have ended', async () => {
    const late: number[] = [];
    for (const round of [1, 2]) {
      limitTime(20, () => late.push(round));
      await sleep(60);
    }
    expect(late).toEqual([1, 2]);
  });

  it('that are longer than a timer can be are not over at once', async () => {
    const late: number[] = [];
    const stop = limitTime(2 ** 40, () => late.push(1));
    await sleep(20);
    stop();
    expect(late).toEqual([]);
  });
});
