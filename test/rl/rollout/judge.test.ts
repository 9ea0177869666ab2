/** A group and a judge's answers -> rewards. */
import { describe, expect, it } from 'vitest';
import type { ChatCompletion, ChatCompletionRequest, Trajectory } from '../../../src/protocol/index.ts';
import type { Completions } from '../../../src/protocol/service/index.ts';
import { gatherTrajectoryGroups } from '../../../src/rl/rollout/gather.ts';
import { judge } from '../../../src/rl/rollout/judge.ts';

const attempt = (content: string, reward = 0): Trajectory => ({
  messages_and_choices: [
    { role: 'system', content: 'You tell stories.' },
    { role: 'user', content: 'Tell me a story.' },
    { index: 0, finish_reason: 'stop', message: { role: 'assistant', content } },
  ],
  reward,
});

/** A service that answers with these texts, one after the other. */
function scripted(...texts: string[]) {
  const asked: ChatCompletionRequest[] = [];
  const createCompletion = async (request: ChatCompletionRequest) => {
    asked.push(request);
    const content = texts[Math.min(asked.length, texts.length) - 1]!;
    return { choices: [{ message: { content } }] } as ChatCompletion;
  };
  return { asked, service: { createCompletion } as unknown as Completions };
}

const group = { trajectories: [attempt('One.', 0.25), attempt('Two.')], exceptions: [] };
const signal = new AbortController().signal;

describe('a judge', () => {
  it('is asked once, with what all attempts have in common once', async () => {
    const { asked, service } = scripted('{"attempt_1": 0.9, "attempt_2": 0.1}');
    const scored = await judge({ service, model: 'judge', rubric: 'Be short.' })(group, signal);
    expect(scored.trajectories.map(({ reward, metrics }) => [reward, metrics])).toEqual([
      [0.9, { own_reward: 0.25 }],
      [0.1, { own_reward: 0 }],
    ]);
    expect(asked).toHaveLength(1);
    expect(asked[0]).toMatchObject({ model: 'judge', temperature: 0, stream: false });
    expect(asked[0]!.messages[1]!.content).toBe(
      [
        'Rubric:\nBe short.',
        'All attempts begin with:\nsystem: You tell stories.\nuser: Tell me a story.',
        'Attempt 1:\nassistant: One.',
        'Attempt 2:\nassistant: Two.',
        'Score each of the 2 attempts from 0 to 1 by the rubric, compared with the others.',
      ].join('\n\n'),
    );
    expect(asked[0]!.response_format).toMatchObject({
      json_schema: { schema: { required: ['attempt_1', 'attempt_2'] } },
    });
  });

  it.each([['text'], ['{"attempt_1": 0.9}'], ['{"attempt_1": 0.9, "attempt_2": 2}'], ['null']])(
    'is asked again after %s',
    async (bad) => {
      const { asked, service } = scripted(bad, '{"attempt_1": 0, "attempt_2": 1}');
      const { trajectories } = await judge({ service })(group, signal);
      expect([asked.length, trajectories[1]!.reward]).toEqual([2, 1]);
      const never = scripted(bad);
      await expect(judge({ service: never.service, retries: 1 })(group, signal)).rejects.toThrow(
        'the judge gave no score from 0 to 1 for each of 2 attempts',
      );
      expect(never.asked).toHaveLength(2);
    },
  );

  it('reads decisions about each attempt with how: decide', async () => {
    const inputs: unknown[] = [];
    const decide = async ({ input }: { input: string }) => {
      inputs.push(input);
      return { answers: [{ type: 'score', score: input.endsWith('second') ? 4 : 1 }] };
    };
    const service = { ...scripted('').service, decide } as never;
    const both = { ...group, trajectories: [attempt('first'), attempt('second')] };
    const { trajectories } = await judge({ service, how: 'decide', model: 'fixed' })(both, signal);
    expect(trajectories.map(({ reward }) => reward)).toEqual([0.25, 1]);
    expect(inputs).toHaveLength(2);
    expect(() => judge({ service, how: 'decide', retries: 1 })).toThrow(
      "retries: expected no value with how: 'decide'",
    );
  });

  it('scores the groups of a gathering', async () => {
    const { service } = scripted('{"attempt_1": 0.5, "attempt_2": 1}');
    const groups = await gatherTrajectoryGroups(['a', 'b'], () => attempt('x'), {
      groupSize: 2,
      scoreGroup: judge({ service }),
    });
    expect(groups.map(({ trajectories }) => trajectories.map(({ reward }) => reward))).toEqual([
      [0.5, 1],
      [0.5, 1],
    ]);
  });

  it('needs a service', () => {
    expect(() => judge({ service: {} as never })).toThrow('service.createCompletion: this field is required');
    expect(() => judge({ service: scripted('').service, retries: -1 })).toThrow(
      'retries: expected an integer >= 0',
    );
  });
});
