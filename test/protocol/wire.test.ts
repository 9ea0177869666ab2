/** The same request in process and over HTTP: unknown fields, absent fields, hostile keys. */
import { describe, expect, it } from 'vitest';
import { faultsOf, faultsOfInput, messagesOf, valid } from './request.ts';

describe('unknown fields', () => {
  it.each([
    ['temprature', 'temperature'],
    ['Temperature', 'temperature'],
    ['maxTokens', 'max_tokens'],
    ['maxCompletionTokens', 'max_completion_tokens'],
    ['topLogProbs', 'top_logprobs'],
    ['stop_tokens_ids', 'stop_token_ids'],
    ['structured_output', 'structured_outputs'],
  ])('%s is a fault in process that names %s', (field, closest) => {
    expect(faultsOf({ [field]: 1 })).toEqual([
      {
        loc: [field],
        msg: `${field}: not a field of a request; did you mean ${closest}?`,
        type: 'unknown_field',
        input: 1,
        ctx: { closest },
      },
    ]);
  });

  it('that are like none name none', () => {
    expect(messagesOf({ guided_decoding_backend_x: 1 })).toEqual([
      'guided_decoding_backend_x: not a field of a request',
    ]);
    expect(messagesOf({ ['x'.repeat(100_000)]: 1 })[0]!.length).toBeLessThan(250);
  });

  it('are ignored over HTTP, at every level', () => {
    const plain = valid({ stream: true, stream_options: {}, structured_outputs: { regex: 'a' } });
    const request = {
      temprature: 'x',
      stream: true,
      stream_options: { foo: 1 },
      structured_outputs: { regex: 'a', regexp: 5 },
      messages: [{ role: 'user', content: 'Hi', weight: 0 }],
    };
    expect(valid(request, { wire: true })).toEqual(plain);
    expect(messagesOf(request)).toHaveLength(4);
  });

  it('of a logits processor are faults over HTTP too', () => {
    expect(messagesOf({ logits_processors: [{ qualname: 'a', argz: [] }] }, { wire: true })).toEqual([
      'logits_processors.0.argz: not a field of logits_processors.0; did you mean args?',
    ]);
  });

  it('that are undefined are absent', () => {
    expect(messagesOf({ temprature: undefined })).toEqual([]);
    expect(messagesOf({ messages: undefined })).toEqual(['messages: this field is required, got nothing']);
  });
});

describe('over HTTP', () => {
  it('nothing is coerced', () => {
    expect(
      messagesOf({ n: '2', temperature: '0.5', logprobs: 1, max_tokens: true }, { wire: true }),
    ).toHaveLength(4);
  });

  it('a top_k beyond every vocabulary is legal', () => {
    expect(valid({ top_k: 1e26 }, { wire: true }).top_k).toBe(2 ** 31 - 1);
  });

  it('there are no functions and no bigints', () => {
    expect(messagesOf({ logits_processors: [() => {}], seed: 5n }, { wire: true })).toEqual([
      'seed: expected an integer from -9223372036854775808 to 9223372036854775807 or null, got 5n',
      'logits_processors.0: expected a non-empty string or an object, got a function',
    ]);
  });
});

describe('hostile keys', () => {
  it('change no prototype', () => {
    const request = JSON.parse(
      '{"__proto__":{"temperature":5},"constructor":1,"chat_template_kwargs":{"__proto__":{"polluted":1},"constructor":{"prototype":1}},"inference_xargs":{"__proto__":"x"},"documents":[{"__proto__":"x"}]}',
    );
    const { temperature, chat_template_kwargs, inference_xargs } = valid(request, { wire: true });
    expect(temperature).toBeNull();
    expect(Object.getPrototypeOf(chat_template_kwargs)).toBe(Object.prototype);
    expect(Object.getPrototypeOf(inference_xargs)).toBe(Object.prototype);
    expect(Object.hasOwn(chat_template_kwargs, '__proto__')).toBe(true);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    expect(faultsOf(request).map(({ loc }) => loc[0])).toEqual(
      expect.arrayContaining(['__proto__', 'constructor']),
    );
  });

  it('work as a tool, a message and a processor name', () => {
    const name = '__proto__';
    const request = {
      tools: [{ type: 'function', function: { name } }],
      tool_choice: { type: 'function', function: { name } },
      messages: [{ role: 'constructor', content: 'Hi', name: 'toString' }],
      logits_processors: ['hasOwnProperty'],
    };
    expect(valid(request).messages[0]!.role).toBe('constructor');
  });

  it('of an input without a prototype are read like others', () => {
    const bare = Object.assign(Object.create(null), {
      messages: [],
      temperature: 0.5,
      chat_template_kwargs: Object.create(null),
    });
    expect(faultsOfInput(bare)).toEqual([]);
  });
});
