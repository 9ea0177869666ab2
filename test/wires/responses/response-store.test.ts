/** A bounded store: the oldest responses give way. */
import { expect, it } from 'vitest';
import type { ResponseObject } from '../../../src/protocol/index.ts';
import { ResponseStore } from '../../../src/wires/responses/response-store.ts';

const stored = (id: string, text = '') => ({
  response: { id, output_text: text } as ResponseObject,
  input: [],
  messages: [],
});

it('keeps 1,024 responses', () => {
  const store = new ResponseStore();
  for (let i = 0; i < 1030; i++) store.add(stored(`r${i}`));
  expect(() => store.get('r5', 'id')).toThrow(/^id: there is no stored response r5$/);
  expect(store.get('r6', 'id').response.id).toBe('r6');
  store.delete('r6');
  expect(() => store.delete('r6')).toThrow('r6');
});

it('keeps 64 million characters', () => {
  const store = new ResponseStore();
  const long = 'x'.repeat(20 * 2 ** 20);
  for (let i = 0; i < 4; i++) store.add(stored(`r${i}`, long));
  expect(() => store.get('r0', 'id')).toThrow('r0');
  expect(store.get('r1', 'id').response.id).toBe('r1');
});
