/** Validation of text completions: what is taken, what it becomes, and what is refused by the caller's path. */
import { describe, expect, it } from 'vitest';
import type { OnpolicyError } from '../../src/errors.ts';
import { validText } from './request.ts';

const valid = (request: object) => validText({ prompt: 'a', ...request });
const faultsOf = (request: object, options = {}): string[] => {
  try {
    validText(request, options);
    return [];
  } catch (error) {
    const { detail, message } = error as OnpolicyError;
    return detail?.map(({ msg }) => msg) ?? [message];
  }
};

describe('the fields', () => {
  it.each([
    ['a text', 'a', [{ path: 'prompt', content: 'a' }]],
    ['ids', [1, 2], [{ path: 'prompt', content: [1, 2] }]],
    [
      'texts',
      ['a', ''],
      [
        { path: 'prompt.0', content: 'a' },
        { path: 'prompt.1', content: '' },
      ],
    ],
    [
      'lists of ids',
      [[1], [2]],
      [
        { path: 'prompt.0', content: [1] },
        { path: 'prompt.1', content: [2] },
      ],
    ],
  ])('take a prompt of %s', (_, prompt, prompts) => {
    expect(valid({ prompt }).prompts).toEqual(prompts);
  });

  it('become those of a chat', () => {
    expect(valid({}).chat).toMatchObject({ messages: [], max_completion_tokens: 16, n: 1, logprobs: false });
    expect(valid({ max_tokens: null }).chat.max_completion_tokens).toBeNull();
    expect(() => valid({ max_tokens: 0, logprobs: 1, logprob_token_ids: [5] })).toThrow(
      'logprob_token_ids: expected no value with max_tokens: 0, which generates no token, got a list of 1',
    );
    expect(valid({ max_tokens: 0 })).toMatchObject({ isEmpty: true, chat: { max_completion_tokens: 1 } });
    expect(valid({ logprobs: 3 })).toMatchObject({ logprobs: 3, chat: { logprobs: true, top_logprobs: 3 } });
    expect(valid({ logprobs: 3, echo: true, stream: true }).chat.prompt_logprobs).toBe(3);
    expect(valid({ logprobs: -1, echo: true, prompt_logprobs: 2 })).toMatchObject({
      promptLogprobs: 2,
      chat: { prompt_logprobs: -1 },
    });
    expect(valid({ n: 2, best_of: 4 })).toMatchObject({ n: 2, chat: { n: 4, logprobs: true } });
    expect(valid({ top_k: 5, min_p: 0.1 }).chat).toMatchObject({ top_k: 5, min_p: 0.1 });
  });

  it('may have values that only exist in process, as those of a chat', () => {
    const processor = (): void => {};
    expect(valid({ seed: 2n ** 62n, logits_processors: [processor] }).chat).toMatchObject({
      seed: 2n ** 62n,
      logits_processors: [processor],
    });
    expect(faultsOf({ prompt: 'a', seed: 2n ** 63n })).toEqual([
      'seed: expected an integer from -9223372036854775808 to 9223372036854775807, got 9223372036854775808n',
    ]);
    expect(faultsOf({ prompt: 'a', seed: 1n }, { wire: true })).toHaveLength(1);
  });

  it.each<[object, string]>([
    [{}, 'prompt: this field is required, got nothing'],
    [{ prompt: null }, 'prompt: expected a string or a non-empty list, got null'],
    [{ prompt: [] }, 'prompt: expected a string or a non-empty list, got an empty list'],
    [{ prompt: [1, 'a'] }, 'prompt.1: expected a token id like the others, got "a"'],
    [{ prompt: [[1], [-1]] }, 'prompt.1.0: expected an integer >= 0, got -1'],
    [
      { prompt: [[]] },
      'prompt.0: expected a string, a token id or a non-empty list of token ids, got an empty list',
    ],
    [{ prompt: 'a', max_tokens: -1 }, 'max_tokens: expected an integer >= 0 or null, got -1'],
    [{ prompt: 'a', n: 3, best_of: 2 }, 'best_of: expected at least the 3 of n, got 2'],
    [{ prompt: 'a', best_of: 2, stream: true }, 'best_of: expected n with stream: true, got 2'],
    [
      { prompt: ['a', 'b'], return_timings: true },
      'return_timings: expected false with several prompts, got true',
    ],
    [
      { prompt: 'a', max_tokens: 0, timings_per_token: true },
      'timings_per_token: expected false with max_tokens: 0, got true',
    ],
    [{ prompt: 'a', suffix: 'b', echo: true }, 'echo: expected false with suffix, got true'],
    [{ prompt: [1], suffix: 'b' }, 'suffix: expected no value with prompts of token ids, got "b"'],
    [
      { prompt: 'a', min_tokens: 5, max_tokens: 2 },
      'min_tokens: expected at most the 2 tokens that may be generated, got 5',
    ],
    [{ prompt: 'a', temperatur: 1 }, 'temperatur: not a field of a request; did you mean temperature?'],
    [{ prompt: 'a', messages: [] }, 'messages: not a field of a request'],
    [
      { prompt: 'a', stream_options: {}, best_of: 0 },
      'best_of: expected an integer from 1 to 16384 or null, got 0',
    ],
  ])('are refused: %j', (request, message) => {
    expect(faultsOf(request)).toEqual([message]);
  });

  it('are refused by the names of this request where a rule of chats finds them', () => {
    const limits = { maxLogprobs: 5, maxChoices: 4 };
    expect(faultsOf({ prompt: 'a', logprobs: 6 }, limits)).toEqual([
      'logprobs: expected an integer from 0 to 5, the most this runtime reports, got 6',
    ]);
    expect(faultsOf({ prompt: 'a', best_of: 6, temperature: 1 }, limits)[0]).toMatch(/^best_of: /);
    expect(faultsOf({ prompt: 'a', n: 6, temperature: 1 }, limits)[0]).toMatch(/^n: /);
  });

  it('that are unknown are ignored over HTTP', () => {
    const ignored: string[] = [];
    const wire = { wire: true, dropUnknown: true, onDropped: (path: string) => ignored.push(path) };
    expect(faultsOf({ prompt: 'a', some_field: 1 }, wire)).toEqual([]);
    expect(ignored).toEqual(['some_field']);
  });
});
