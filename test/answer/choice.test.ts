import { describe, expect, it } from 'vitest';
import type { ChoiceOptions } from '../../src/answer/choice.ts';
import type { Finish, StopRules } from '../../src/answer/text-out.ts';
import { OnpolicyError } from '../../src/errors.ts';
import type { MessagePlan } from '../../src/template/chat-format/index.ts';
import { REASONING_FORMATS } from '../../src/template/reasoning/index.ts';
import { bytes, END_OF_TURN, EOS } from '../fakes/byte-tokenizer.ts';
import { sampledRows } from '../fakes/sampled-rows.ts';
import { CALLS, ended, feed, newChoice, RULES, stopAt } from './choices.ts';

const stop = (stopReason: string | number | null): Finish => ({ reason: 'stop', stopReason });
const LENGTH: Finish = { reason: 'length', stopReason: null };

describe('a choice', () => {
  it.each<[string, number[], Partial<ChoiceOptions>, string, Finish | null]>([
    ['goes on', bytes('abc'), {}, 'abc', null],
    ['ends with the end token', ended('ab'), {}, 'ab', stop(null)],
    ['ends with another end token', [...bytes('ab'), END_OF_TURN], {}, 'ab', stop(END_OF_TURN)],
    ['ends with a stop string', bytes('ab.c'), { rules: stopAt('.') }, 'ab', stop('.')],
    ['ends with its last token', bytes('abc'), { rules: { ...RULES, maxTokens: 2 } }, 'ab', LENGTH],
  ])('%s', (_, tokens, options, content, finish) => {
    const choice = feed(newChoice(options), tokens);
    choice.catchUp();
    expect(choice.message.content).toBe(content);
    expect(choice.finish).toEqual(finish);
    expect(choice.isEnded).toBe(finish !== null);
  });

  it.each<[string, number[], number[][]]>([
    ['one token', bytes('a'), [[97]]],
    ['a token and the end', ended('a'), [[97], [EOS]]],
  ])('gives each token in one delta: %s', (_, tokens, expected) => {
    const choice = newChoice();
    const rows = sampledRows(tokens);
    const taken = tokens.map((token, row) => {
      choice.onToken(token, rows, row, false);
      expect(choice.hasDelta(1)).toBe(true);
      const { tokenIds } = choice.takeDelta();
      expect(choice.hasDelta(1)).toBe(false);
      return tokenIds;
    });
    expect(taken).toEqual(expected);
  });

  it('deltas of several tokens add up to the choice', () => {
    const choice = feed(newChoice({ wantsLogprobs: true }), ended('abc'));
    const delta = choice.takeDelta();
    expect(delta.message.content).toBe('abc');
    expect(delta.tokenIds).toEqual(ended('abc'));
    expect(delta.logprobs).toEqual(choice.logprobs);
    expect(delta.finish).toEqual(stop(null));
    expect(choice.takeDelta()).toEqual({
      message: { content: '', reasoning: '', toolCalls: [] },
      tokenIds: [],
      logprobs: [],
      finish: stop(null),
    });
  });

  it.each<[boolean, string[]]>([
    [false, ['a', 'b']],
    [true, ['token_id:97', 'token_id:98']],
  ])('log-probabilities with tokens as ids %s', (tokensAsIds, top) => {
    const choice = feed(newChoice({ wantsLogprobs: true, tokensAsIds }), [97]);
    choice.catchUp();
    const [entry] = choice.logprobs;
    expect(entry).toMatchObject({ token: top[0], logprob: Math.fround(-0.097), bytes: [97] });
    expect(entry!.top_logprobs.map(({ token }) => token)).toEqual(top);
  });

  it('makes no log-probabilities that are not wanted', () => {
    expect(feed(newChoice(), ended('ab')).takeDelta().logprobs).toEqual([]);
  });

  it('ends when its constraint lets nothing follow', () => {
    const choice = newChoice();
    expect(choice.onToken(97, sampledRows([97]), 0, true)).toBe(true);
    expect(choice.finish).toEqual(stop(null));
  });

  it('ends at the end of its constraint, without a token', () => {
    const choice = feed(newChoice(), bytes('ab'));
    choice.onComplete();
    expect(choice.takeDelta()).toMatchObject({ tokenIds: bytes('ab'), finish: stop(null) });
  });

  it('keeps a token that is no part of the text', () => {
    const choice = feed(newChoice(), bytes('ab'));
    choice.keepToken(99, sampledRows([99]), 0);
    expect(choice.takeDelta()).toMatchObject({ message: { content: 'ab' }, tokenIds: bytes('abc') });
  });

  it('says of every token, its end and its failure that it has changed', () => {
    const states: string[] = [];
    const onChange: ChoiceOptions['onChange'] = ({ finish, error }) =>
      states.push(error ? 'failed' : finish ? 'ended' : 'token');
    feed(newChoice({ onChange }), ended('ab'));
    newChoice({ onChange }).onError(new OnpolicyError('BACKEND_FAILED', 'broken'));
    expect(states).toEqual(['token', 'token', 'ended', 'failed']);
  });
});

describe('an end token that says how a message ends', () => {
  const framed = (rules: Partial<StopRules>) => {
    const { harmony } = REASONING_FORMATS;
    const message: MessagePlan = {
      tools: { ...CALLS.tools!, format: 'harmony' },
      reasoning: { format: harmony, startsInside: false },
      includeReasoning: true,
    };
    const messageEnds = new Map([
      [END_OF_TURN, '<|call|>'],
      [EOS, '<|return|>'],
    ]);
    return newChoice({ message, rules: { ...RULES, maxTokens: 200, messageEnds, ...rules } });
  };
  const CALL_HEADER = '<|channel|>commentary to=functions.weather <|constrain|>json<|message|>';
  const REASONED = '<|channel|>analysis<|message|>why<|end|><|start|>assistant';

  it.each([
    ['without stop strings', {}],
    ['with stop strings', { stops: stopAt('never').stops }],
  ])('%s', (_, rules) => {
    const read = (text: string, end: number | null) => {
      const choice = feed(framed(rules), [...bytes(text), ...(end === null ? [] : [end])]);
      if (end === null) choice.end(LENGTH);
      const { content, reasoning, toolCalls } = choice.takeDelta().message;
      const calls = toolCalls.map((call) => call.function?.arguments ?? '').join('');
      return { content, reasoning, calls, isBroken: choice.message.hasBrokenCall };
    };
    expect(read(REASONED + CALL_HEADER, END_OF_TURN)).toEqual({
      content: '',
      reasoning: 'why',
      calls: '{}',
      isBroken: false,
    });
    expect(read(CALL_HEADER, null).isBroken).toBe(true);
    expect(read(`${CALL_HEADER}{"a": 1}`, END_OF_TURN)).toMatchObject({ calls: '{"a": 1}', isBroken: false });
    expect(read('<|channel|>final<|message|>Hello', EOS)).toMatchObject({ content: 'Hello', calls: '' });
  });
});
