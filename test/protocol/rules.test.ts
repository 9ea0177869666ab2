/** The rules between fields, the vocabulary's bounds, and free-form data. */
import { describe, expect, it } from 'vitest';
import { checkVocabulary } from '../../src/protocol/index.ts';
import { chatRules } from '../../src/protocol/rules/index.ts';
import { BEAM_RULE_ROWS } from './beam-rule-rows.ts';
import { CONTEXT_SHIFT_RULE_ROWS } from './context-shift-rule-rows.ts';
import { faultsOf, messagesOf, valid, vocabularyFaultsOf } from './request.ts';
import { RULE_ROWS } from './rule-rows.ts';
import { STRUCTURED_RULE_ROWS } from './structured-rule-rows.ts';
import { TOOL_RULE_ROWS } from './tool-rule-rows.ts';

const ROWS = {
  ...RULE_ROWS,
  ...BEAM_RULE_ROWS,
  ...STRUCTURED_RULE_ROWS,
  ...TOOL_RULE_ROWS,
  ...CONTEXT_SHIFT_RULE_ROWS,
};

const loop: Record<string, unknown> = {};
loop['self'] = loop;
const tower = (levels: number): unknown => (levels === 0 ? null : [tower(levels - 1)]);

describe('rules', () => {
  it('all have rows', () => {
    expect(Object.keys(ROWS).sort()).toEqual(chatRules.map(({ name }) => name).sort());
  });

  it.each(Object.entries(ROWS))('%s', (name, { good, bad, options = {} }) => {
    for (const request of good) expect(messagesOf(request, options)).toEqual([]);
    for (const [request, message] of bad) expect(messagesOf(request, options)).toEqual([message]);
    const { check } = chatRules.find((rule) => rule.name === name)!;
    const settings = {
      maxLogprobs: null,
      scheduling: 'fcfs',
      maxChoices: null,
      allowRequestTemplate: true,
      ...options,
    } as const;
    for (const [request] of bad)
      expect([check({ messages: [], ...request }, settings)].flat(), 'this rule, and no other').toHaveLength(
        1,
      );
  });
});

describe('options', () => {
  it('lift what is refused without them', () => {
    expect(messagesOf({ priority: 5 }, { scheduling: 'priority' })).toEqual([]);
    expect(messagesOf({ chat_template: 'x' })).toEqual([]);
    expect(messagesOf({ logprobs: true, top_logprobs: 100_000, prompt_logprobs: -1 })).toEqual([]);
  });
});

describe('token ids', () => {
  const request = { logit_bias: { 9: 1, 10: 1 }, stop_token_ids: [9, 10], allowed_token_ids: [10, 11] };
  const below = 'a token id below 10, the size of the vocabulary';

  it('are checked against the vocabulary', () => {
    expect(vocabularyFaultsOf({ ...request, stop_token_ids: [9] }, 10)).toEqual([
      `logit_bias.10: expected ${below}, got 10`,
      `allowed_token_ids.0: expected ${below}, got 10`,
      `allowed_token_ids.1: expected ${below}, got 11`,
    ]);
    expect(messagesOf({ logit_bias: { x: 1 } })).toEqual([
      'logit_bias.x: expected a token id as key, got "x"',
    ]);
    expect(vocabularyFaultsOf({ logprobs: true, logprob_token_ids: [9, 10] }, 10)).toEqual([
      `logprob_token_ids.1: expected ${below}, got 10`,
    ]);
    expect(vocabularyFaultsOf({ logprobs: true, top_logprobs: 11, prompt_logprobs: 10 }, 10)).toEqual([
      'top_logprobs: expected at most 10, the size of the vocabulary, got 11',
    ]);
    expect(
      vocabularyFaultsOf({ logit_bias: { 9: 1 }, stop_token_ids: null, allowed_token_ids: [0] }, 10),
    ).toEqual([]);
  });

  it('are checked later when the vocabulary is not known at validation', () => {
    const later = valid(request);
    expect(() => checkVocabulary(later, 12)).not.toThrow();
    expect(() => checkVocabulary(later, 10)).toThrow(
      `logit_bias.10: expected ${below}, got 10 (and 3 more faults)`,
    );
  });
});

describe('free-form data', () => {
  it('is refused when it is inside itself or too deep', () => {
    const message = 'at most 256 levels and no object inside itself';
    expect(messagesOf({ chat_template_kwargs: loop })[0]).toContain(message);
    expect(messagesOf({ chat_template_kwargs: { a: tower(300) } })[0]).toContain(message);
    expect(messagesOf({ chat_template_kwargs: { a: tower(254) } })).toEqual([]);
  });

  it('is refused when shared parts make it endless', () => {
    let shared: unknown = 'x';
    for (let level = 0; level < 60; level++) shared = { left: shared, right: shared };
    expect(messagesOf({ kv_transfer_params: { shared } })[0]).toContain('expected at most 5000000 values');
  });
});

it('finds every fault at once', () => {
  const faults = faultsOf({ temperature: -1, n: 0, priority: 2, tool_choice: 'auto', topk: 5, stop: [''] });
  expect(faults.map(({ loc, type }) => [loc.join('.'), type])).toEqual([
    ['topk', 'unknown_field'],
    ['temperature', 'range'],
    ['n', 'range'],
    ['stop.0', 'length'],
    ['tool_choice', 'conflict'],
    ['priority', 'unsupported'],
  ]);
});

it.each(chatRules.map((rule) => [rule.name, rule] as const))(
  'finds nothing where none of its fields is given: %s',
  (_, { reads, check }) => {
    const request = { messages: [] };
    const options = {
      maxLogprobs: 0,
      maxChoices: 1,
      scheduling: 'fcfs',
      allowRequestTemplate: false,
    } as const;
    if (!reads.includes('messages')) expect(check(request, options) ?? []).toEqual([]);
  },
);
