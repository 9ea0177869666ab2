import { describe, expect, it } from 'vitest';
import type { Choice } from '../../src/answer/choice.ts';
import type { Completion } from '../../src/answer/completion.ts';
import { type AnswerHeader, toResponse } from '../../src/answer/response.ts';
import { bytes, EOS } from '../fakes/byte-tokenizer.ts';
import { functionsOf } from '../fakes/calls.ts';
import { CALL, CALLS, ended, feed, newChoice, RULES, stopAt, THINKING } from './choices.ts';

const HEADER: AnswerHeader = {
  id: 'chatcmpl-1',
  created: 5,
  model: 'tiny',
  systemFingerprint: 'print',
  drawnSeed: null,
  role: 'assistant',
  echo: '',
  usesFunctions: false,
  namesTool: false,
  promptText: null,
  promptIds: Int32Array.of(1, 2, 3),
  promptTokens: 3,
  mediaTokens: null,
  returnTokenIds: false,
  wantsLogprobs: false,
  returnTimings: false,
  timesChunks: false,
  warnings: [],
};

/** A completion that is done. */
function done(...choices: Choice[]): Completion {
  for (const choice of choices) choice.catchUp();
  const usage = { accepted_prediction_tokens: 4, rejected_prediction_tokens: 1 };
  const [fields, reportOf] = [() => ({}), () => ({})];
  return { choices, cachedTokens: 2, usage, fields, reportOf } as unknown as Completion;
}

describe('a response', () => {
  it('has these fields', () => {
    expect(toResponse(HEADER, done(feed(newChoice(), ended('ab'))))).toEqual({
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 5,
      model: 'tiny',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: 'ab',
            refusal: null,
            annotations: null,
            audio: null,
            function_call: null,
            tool_calls: [],
            reasoning: null,
            reasoning_content: null,
          },
          logprobs: null,
          finish_reason: 'stop',
          stop_reason: null,
          token_ids: null,
        },
      ],
      service_tier: null,
      system_fingerprint: 'print',
      seed: null,
      usage: {
        prompt_tokens: 3,
        total_tokens: 6,
        completion_tokens: 3,
        prompt_tokens_details: { cached_tokens: 2 },
        completion_tokens_details: { accepted_prediction_tokens: 4, rejected_prediction_tokens: 1 },
      },
      prompt_logprobs: null,
      prompt_token_ids: null,
      kv_transfer_params: null,
    });
  });

  it.each<[string, Choice, Partial<AnswerHeader>, object]>([
    ['plain text', feed(newChoice(), ended('ab')), {}, { content: 'ab', finish: 'stop', reason: null }],
    ['nothing', feed(newChoice(), [EOS]), {}, { content: '', finish: 'stop' }],
    [
      'a stop string',
      feed(newChoice({ rules: stopAt('.') }), bytes('a.')),
      {},
      { content: 'a', reason: '.' },
    ],
    [
      'the last token',
      feed(newChoice({ rules: { ...RULES, maxTokens: 2 } }), bytes('abc')),
      {},
      { content: 'ab', finish: 'length', reason: null },
    ],
    ['an echo', feed(newChoice(), ended('ab')), { echo: 'x' }, { content: 'xab' }],
    [
      'reasoning',
      feed(newChoice({ message: THINKING }), ended('<think>why</think>so')),
      {},
      { content: 'so', reasoning: 'why', finish: 'stop' },
    ],
    [
      'reasoning alone',
      feed(newChoice({ message: THINKING }), ended('<think>why</think>')),
      {},
      { content: null, reasoning: 'why' },
    ],
    [
      'a call',
      feed(newChoice({ message: CALLS }), ended(CALL)),
      {},
      { content: null, calls: ['weather {"city": "Rome"}'], finish: 'tool_calls' },
    ],
    [
      'a call of the tool that the request names',
      feed(newChoice({ message: CALLS }), ended(CALL)),
      { namesTool: true },
      { calls: ['weather {"city": "Rome"}'], finish: 'stop' },
    ],
    [
      'a broken call',
      feed(newChoice({ message: CALLS }), ended(CALL.slice(0, -20))),
      {},
      { content: null, calls: ['weather {"city": '], finish: 'length' },
    ],
  ])('says of %s', (_, choice, header, expected) => {
    const [shown] = toResponse({ ...HEADER, ...header }, done(choice)).choices;
    const { content, reasoning, tool_calls } = shown!.message;
    expect({
      content,
      reasoning,
      calls: functionsOf(tool_calls).map((call) => `${call.name} ${call.arguments}`),
      finish: shown!.finish_reason,
      reason: shown!.stop_reason,
    }).toMatchObject(expected);
  });

  it('gives ids and log-probabilities only where the request wants them', () => {
    const choice = feed(newChoice({ wantsLogprobs: true }), ended('a'));
    const wanted = { ...HEADER, returnTokenIds: true, wantsLogprobs: true, drawnSeed: 7 };
    const { prompt_token_ids, seed, choices } = toResponse(wanted, done(choice));
    expect({ prompt_token_ids, seed }).toEqual({ prompt_token_ids: [1, 2, 3], seed: 7 });
    expect(choices[0]).toMatchObject({ token_ids: ended('a'), logprobs: { content: [{ token: 'a' }, {}] } });
  });

  it('counts the prompt once and the tokens of all choices', () => {
    const both = done(feed(newChoice(), ended('ab')), feed(newChoice({}, 1), bytes('abcd')));
    both.choices[1]!.onComplete();
    const { usage, choices } = toResponse(HEADER, both);
    expect(usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 7, total_tokens: 10 });
    expect(choices.map(({ index }) => index)).toEqual([0, 1]);
  });
});
