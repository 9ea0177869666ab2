/** Faults as callers see them: wording, shape, how many, and what happens to inputs that cannot be read. */
import { describe, expect, it } from 'vitest';
import { OnpolicyError } from '../../src/errors.ts';
import { type ChatRequestOptions, checkAndAdmitChat } from '../../src/protocol/index.ts';
import { faultsOf, faultsOfInput, messagesOf } from './request.ts';

function errorOf(input: unknown, options: ChatRequestOptions = {}): OnpolicyError {
  try {
    checkAndAdmitChat(input, options);
  } catch (error) {
    return error as OnpolicyError;
  }
  throw new Error('it was valid');
}

describe('a fault', () => {
  it.each<[Record<string, unknown>, object]>([
    [{ n: 0 }, { loc: ['n'], type: 'range', input: 0, ctx: { minimum: 1 } }],
    [{ top_p: 0 }, { loc: ['top_p'], type: 'range', input: 0, ctx: { exclusiveMinimum: 0 } }],
    [{ min_p: 2 }, { loc: ['min_p'], type: 'range', input: 2, ctx: { maximum: 1 } }],
    [{ n: '1' }, { loc: ['n'], type: 'type', input: '1' }],
    [{ messages: undefined }, { loc: ['messages'], type: 'missing' }],
    [{ stop: ['a', ''] }, { loc: ['stop', '1'], type: 'length', input: '', ctx: { minLength: 1 } }],
    [
      { allowed_token_ids: [] },
      { loc: ['allowed_token_ids'], type: 'length', input: [], ctx: { minItems: 1 } },
    ],
    [
      { reasoning_effort: 'most' },
      {
        loc: ['reasoning_effort'],
        type: 'value',
        input: 'most',
        ctx: { allowed: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max', null] },
      },
    ],
    [
      { tools: [{ type: 'x', function: { name: 'a' } }] },
      { loc: ['tools', '0', 'type'], type: 'value', input: 'x', ctx: { allowed: ['function', 'custom'] } },
    ],
    [
      { inference_xargs: { 'a/b~c': null } },
      { loc: ['inference_xargs', 'a/b~c'], type: 'type', input: null },
    ],
    [
      { temperature: 0, n: 2 },
      { loc: ['n'], type: 'conflict', input: 2 },
    ],
    [{ priority: 1 }, { loc: ['priority'], type: 'unsupported', input: 1 }],
  ])('of %o has its place, type, value and bounds', (fields, expected) => {
    const [first, ...rest] = faultsOf(fields);
    const { msg, ...others } = first!;
    expect(others).toEqual(expected);
    expect(msg).toContain(': ');
    expect(rest).toEqual([]);
  });

  it('of something long says it short', () => {
    const [message] = messagesOf({ n: 'x'.repeat(1_000_000) });
    expect(message!.length).toBeLessThan(160);
  });
});

describe('the error', () => {
  it('has the field at fault when there is one', () => {
    const error = errorOf({ messages: [], n: 0 });
    expect(error).toMatchObject({ code: 'INVALID_REQUEST', status: 400, param: 'n' });
    expect(error.message).toBe('n: expected an integer from 1 to 16384 or null, got 0');
  });

  it('counts the faults when there are more', () => {
    expect(errorOf({ messages: [], n: 0, top_p: 5 }).message).toMatch(/^top_p: .* \(and 1 more fault\)$/);
    const error = errorOf({ messages: [], n: 0, top_p: 5, top_k: 'x' });
    expect(error.message).toMatch(/ \(and 2 more faults\)$/);
    expect(error.param).toBe('top_p');
    expect(error.detail).toHaveLength(3);
  });

  const many = (value: unknown): unknown[] => Array.from({ length: 200_000 }, () => value);

  it.each<[string, Record<string, unknown>]>([
    ['messages', { messages: many(1) }],
    ['parts', { messages: [{ role: 'user', content: many({ type: 'text' }) }] }],
    ['texts', { messages: [], stop: many('') }],
    ['words', { messages: [], bad_words: many('') }],
    ['ids', { messages: [], allowed_token_ids: many(-7) }],
    ['items under a long key', { messages: [], inference_xargs: { ['x'.repeat(1_000_000)]: many({}) } }],
    ['fields', { messages: [], ...Object.fromEntries(many(1).map((_, i) => [`field${i}`, 1])) }],
  ])('lists the first hundred of very many faulty %s, in linear time', (_, input) => {
    const error = errorOf(input); // in squared time, it would take minutes, and the test runs out of time
    expect(error.detail).toHaveLength(100);
    expect(error.message).toMatch(/ \(and 199999 more faults\)$/);
    expect(error.message.length).toBeLessThan(400);
  });

  it.each([null, undefined, 5, 'x', [], true, Symbol('x'), () => 1, 5n])('takes %s as a request', (input) => {
    expect(faultsOfInput(input)).toMatchObject([{ loc: [], type: 'type' }]);
  });

  it('keeps what the input threw while it was read', () => {
    const cause = new TypeError('no');
    const trap = {
      get messages() {
        throw cause;
      },
    };
    const error = errorOf(trap);
    expect(error).toBeInstanceOf(OnpolicyError);
    expect(error).toMatchObject({
      code: 'INVALID_REQUEST',
      cause,
      param: 'messages',
      message: 'messages: expected a value that can be read, got no',
    });
  });
});
