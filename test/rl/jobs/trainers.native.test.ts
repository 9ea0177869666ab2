/** Trainers that nobody uses for long -> closed, whatever their last user says; a use meanwhile waits for that. */
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type ParkedState, Trainers } from '../../../src/rl/jobs/trainers.ts';

const FILE = path.resolve(import.meta.dirname, '../../../models/onpolicy-tiny.gguf');
const KEPT_FOR_MS = 300_000;
const settings = { rank: 1, gpu: false, threads: 1 } as const;

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

it('a trainer whose state cannot be taken out is closed', async () => {
  const trainers = new Trainers();
  const resident: ParkedState = {
    park: async () => {
      throw new Error('no memory for the state');
    },
    resume: async () => {},
  };
  const first = await trainers.use(FILE, settings, resident, async (trainer) => trainer);
  await vi.advanceTimersByTimeAsync(KEPT_FOR_MS);
  await trainers.use(FILE, settings, null, async (second) => expect(second).not.toBe(first));
  await expect(first.state()).rejects.toMatchObject({ code: 'CLOSED' });
  await trainers.close();
});

it('a use waits for a trainer that is being closed, and has the state that was taken out of it', async () => {
  const trainers = new Trainers();
  const log: string[] = [];
  let letPark!: () => void;
  const mayPark = new Promise<void>((resolve) => {
    letPark = resolve;
  });
  const resident: ParkedState = {
    park: async () => {
      await mayPark;
      log.push('parked');
    },
    resume: async () => void log.push('resumed'),
  };
  await trainers.use(FILE, settings, resident, async () => {});
  vi.advanceTimersByTime(KEPT_FOR_MS);
  const second = trainers.use(FILE, settings, resident, async () => {});
  await Promise.race([second, sleep(300)]); // it must not end
  expect(log).toEqual(['resumed']);
  letPark();
  await second;
  expect(log).toEqual(['resumed', 'parked', 'resumed']);
  await trainers.close();
});
