/** A bounded store: the oldest responses give way. */
import { expect, it } from 'vitest';
import type { ResponseObject } from '../../../../src/protocol/index.ts';
import { ResponseStore } from '../../../../src/serve/wires/responses/response-store.ts';
import { newItem } from '../../../../src/serve/wires/responses/to-response.ts';

const stored = (id: string, text = '', output: ResponseObject['output'] = []) => ({
  owner: 'one',
  response: { id, output_text: text, output } as ResponseObject,
  input: [],
  messages: [],
});

it('keeps 1,024 responses', () => {
  const store = new ResponseStore();
  for (let i = 0; i < 1030; i++) store.add(stored(`r${i}`));
  expect(() => store.get('r5', 'id', 'one')).toThrow(/^id: there is no stored response r5$/);
  expect(store.get('r6', 'id', 'one').response.id).toBe('r6');
  expect(() => store.get('r6', 'id', 'two')).toThrow('r6');
  expect(() => store.delete('r6', 'two')).toThrow('r6');
  expect(store.get('r6', 'id', null).response.id).toBe('r6');
  store.delete('r6', 'one');
  expect(() => store.delete('r6', 'one')).toThrow('r6');
});

it('keeps 64 million characters', () => {
  const store = new ResponseStore();
  const long = 'x'.repeat(20 * 2 ** 20);
  for (let i = 0; i < 4; i++) store.add(stored(`r${i}`, long));
  expect(() => store.get('r0', 'id', 'one')).toThrow('r0');
  expect(store.get('r1', 'id', 'one').response.id).toBe('r1');
});

it('resolves references to items, also where an earlier response that has one is gone', () => {
  const store = new ResponseStore();
  const item = newItem('function_call', { call_id: 'call_1', name: 'look', arguments: '' });
  store.add(stored('r0', '', [item]));
  store.add({ ...stored('r1'), input: [{ ...item }] });
  store.delete('r0', 'one');
  const question = { role: 'user' as const, content: 'Hi' };
  const input = [question, { type: 'item_reference' as const, id: item.id }];
  expect(store.resolve(input, 'one')).toEqual([question, item]);
  store.delete('r1', 'one');
  expect(() => store.resolve(input, 'one')).toThrow(`input.1.id: there is no stored item ${item.id}`);
});
