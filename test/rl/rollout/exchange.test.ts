/** Answers in all forms of calls -> choices of a trajectory, the same whole and streamed. */
import { describe, expect, it } from 'vitest';
import type { ChatCompletion, ChatCompletionChunk } from '../../../src/protocol/index.ts';
import { ChunkJoiner, wholeChunk } from '../../../src/rl/rollout/exchange.ts';

const LOGPROBS = { content: [{ token: 'token_id:5', logprob: -1 }] };
const EXPERTS = { layers: 1, used: 1, data: 'AAABAA==' };
type Message = Record<string, unknown>;
type Delta = Record<string, unknown>;

describe('a recorded answer', () => {
  it.each<[string, Message, Delta[], Message]>([
    ['text', { content: 'hi' }, [{ content: 'h' }, { content: 'i' }], { content: 'hi' }],
    [
      'a call of a function',
      {
        content: null,
        tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      [
        { tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } }] },
        { tool_calls: [{ index: 0, function: { arguments: '{}' } }] },
      ],
      {
        content: null,
        tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
    ],
    [
      'a call of a custom tool',
      { content: null, tool_calls: [{ id: 'a', type: 'custom', custom: { name: 'f', input: 'xy' } }] },
      [
        { tool_calls: [{ index: 0, id: 'a', type: 'custom', custom: { name: 'f', input: 'x' } }] },
        { tool_calls: [{ index: 0, custom: { input: 'y' } }] },
      ],
      { content: null, tool_calls: [{ id: 'a', type: 'custom', custom: { name: 'f', input: 'xy' } }] },
    ],
    [
      'a call in the older form',
      { content: null, tool_calls: [], function_call: { name: 'f', arguments: '{}' } },
      [{ function_call: { name: 'f', arguments: '' } }, { function_call: { arguments: '{}' } }],
      { content: null, function_call: { name: 'f', arguments: '{}' } },
    ],
  ])('%s', (_, message, deltas, expected) => {
    const answer = {
      prompt_token_ids: [1],
      choices: [
        {
          index: 0,
          finish_reason: 'stop',
          logprobs: LOGPROBS,
          token_ids: [5],
          routed_experts: EXPERTS,
          message: { role: 'assistant', ...message },
        },
      ],
    };
    const joiner = new ChunkJoiner();
    for (const [i, delta] of deltas.entries()) {
      const isLast = i === deltas.length - 1;
      const choice = {
        index: 0,
        delta,
        finish_reason: isLast ? 'stop' : null,
        logprobs: isLast ? LOGPROBS : null,
        token_ids: isLast ? [5] : [],
        ...(isLast ? { routed_experts: EXPERTS } : {}),
      };
      joiner.add({ prompt_token_ids: [1], choices: [choice] } as unknown as ChatCompletionChunk);
    }
    const once = new ChunkJoiner();
    once.add(wholeChunk(answer as unknown as ChatCompletion));
    const [whole] = once.choices();
    expect(whole!.message).toEqual({ role: 'assistant', ...expected });
    expect(whole!.routed_experts).toBe(EXPERTS);
    expect(joiner.choices()).toEqual([whole]);
  });
});
