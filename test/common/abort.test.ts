/** A signal -> everybody who waits for it, through one listener. */
import { getEventListeners } from 'node:events';
import { expect, it } from 'vitest';
import { onAbort } from '../../src/common/index.ts';

it('a signal has one listener, however many wait, and none when nobody does', () => {
  const { signal } = new AbortController();
  const waits = Array.from({ length: 20 }, () => onAbort(signal, () => {}));
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  for (const wait of waits) wait[Symbol.dispose]();
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  const again = onAbort(signal, () => {});
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  waits[0]![Symbol.dispose](); // a second time
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  again[Symbol.dispose]();
});

it('calls each once, in order, but those that ended before, also one that another one ends', () => {
  const controller = new AbortController();
  const { signal } = controller;
  const called: string[] = [];
  const act = (): void => void called.push('same');
  onAbort(signal, act);
  onAbort(signal, act);
  onAbort(signal, () => {
    called.push('first');
    ended[Symbol.dispose]();
  });
  const ended = onAbort(signal, () => called.push('ended'));
  controller.abort();
  controller.abort();
  expect(called).toEqual(['same', 'same', 'first']);
  onAbort(signal, () => called.push('late'));
  expect(called.at(-1)).toBe('late');
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});
