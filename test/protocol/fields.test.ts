/** Every field of a chat completion request alone: accepted values, their result, refused values. */
import { describe, expect, it } from 'vitest';
import type { ValidChatRequest } from '../../src/protocol/index.ts';
import { IGNORED_FIELDS } from '../../src/protocol/schemas/chat-completion.ts';
import { definitions } from '../../src/protocol/schemas/index.ts';
import { MESSAGE_ROWS } from './message-rows.ts';
import { messagesOf, valid } from './request.ts';
import { SAMPLING_ROWS } from './sampling-rows.ts';
import { TOOL_ROWS } from './tool-rows.ts';

const ROWS = { ...SAMPLING_ROWS, ...MESSAGE_ROWS, ...TOOL_ROWS };
const rows = Object.entries(ROWS);

describe('fields', () => {
  it('are all here but messages and those without effect', () => {
    const known = Object.keys(definitions['ChatCompletionRequest']!.properties!);
    expect([...Object.keys(ROWS), ...IGNORED_FIELDS, 'messages'].sort()).toEqual(known.sort());
  });

  it.each(rows)('%s is taken', (field, { as = field, absent, good, beside = {} }) => {
    const value = (fields: Record<string, unknown>): unknown =>
      valid({ ...beside, ...fields })[as as keyof ValidChatRequest];
    expect(value({})).toEqual(absent);
    expect(value({ [field]: undefined })).toEqual(absent);
    for (const [given, normal] of good)
      expect(value({ [field]: given }), `given ${String(given)}`).toEqual(normal);
  });

  it.each(rows)('%s is refused', (field, { bad, beside = {} }) => {
    for (const [given, message] of bad)
      expect(messagesOf({ ...beside, [field]: given })).toEqual([field + message]);
  });

  it.each(IGNORED_FIELDS.map((field) => [field]))('%s changes nothing', (field) => {
    const plain = valid({});
    for (const value of [null, 'x', 5, { a: 1 }, [1]])
      for (const wire of [true, false]) expect(valid({ [field]: value }, { wire })).toEqual(plain);
  });
});
