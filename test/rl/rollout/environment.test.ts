/** A server of OpenEnv's protocol -> trajectories of its games; one that hangs or answers nonsense -> failed attempts that name it. */
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { ChatCompletion, ChatCompletionRequest } from '../../../src/protocol/index.ts';
import { environmentRollout } from '../../../src/rl/rollout/environment.ts';
import { gatherTrajectoryGroups } from '../../../src/rl/rollout/gather.ts';

const servers: http.Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

/** Answers each request with what `answer` makes of its path and body; undefined: never. */
async function serveGame(answer: (path: string, body: never) => unknown): Promise<string> {
  const server = http.createServer((request, response) => {
    let text = '';
    request.on('data', (part) => {
      text += part;
    });
    request.on('end', () => {
      const said = answer(request.url!, JSON.parse(text) as never);
      if (said !== undefined) response.end(typeof said === 'string' ? said : JSON.stringify(said));
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A number to be found by halving; the task is the number. */
function guessing() {
  let secret = 0;
  let isPlayed = false;
  return (path: string, { number, action }: { number: number; action: { guess: number } }) => {
    if (path === '/reset') {
      if (isPlayed) return { observation: { hint: 'two at once' }, done: true, reward: -100 };
      isPlayed = true;
      secret = number;
      return { observation: { hint: 'from 0 to 15' }, reward: null, done: false };
    }
    const done = action.guess === secret;
    if (done) isPlayed = false;
    const hint = action.guess < secret ? 'higher' : 'lower';
    return { observation: { hint }, reward: done ? 1 : -0.1, done };
  };
}

/** A model that halves what the hints leave. */
const service = {
  async createCompletion({ messages }: ChatCompletionRequest) {
    let [low, high] = [0, 15];
    for (const [i, { content }] of messages.entries()) {
      const guess = Number(messages[i - 1]?.content);
      if (content === 'higher') low = guess + 1;
      if (content === 'lower') high = guess - 1;
    }
    const content = String((low + high) >> 1);
    const choice = {
      index: 0,
      message: { role: 'assistant', content },
      finish_reason: 'stop',
      token_ids: [Number(content)],
      logprobs: { content: [{ token: content, logprob: -1 }] },
    };
    return { choices: [choice], prompt_token_ids: [1] } as unknown as ChatCompletion;
  },
  async close() {},
  async [Symbol.asyncDispose]() {},
};

const play = (baseUrls: readonly string[], more: object = {}) =>
  environmentRollout<number>({
    baseUrls,
    service: service as never,
    model: 'm',
    toReset: (number) => ({ number }),
    toMessage: ({ hint }) => String(hint),
    toAction: (answer) => ({ guess: Number(answer) }),
    ...more,
  });

describe('an environment', () => {
  it('is played to its end, by one attempt at a time on each server', async () => {
    const baseUrls = await Promise.all([serveGame(guessing()), serveGame(guessing())]);
    const groups = await gatherTrajectoryGroups([0, 7, 9, 15], play(baseUrls), { groupSize: 2 });
    const turns = [4, 1, 3, 5]; // of halving 0 to 15 downwards
    groups.forEach(({ trajectories }, i) => {
      for (const { reward, metrics, messages_and_choices } of trajectories) {
        expect(metrics).toEqual({ turns: turns[i], is_done: true });
        expect(reward).toBeCloseTo(1 - 0.1 * (turns[i]! - 1), 9);
        expect(messages_and_choices).toHaveLength(2 * turns[i]!);
      }
    });
  });

  it('ends after the most turns', async () => {
    const [group] = await gatherTrajectoryGroups([15], play([await serveGame(guessing())], { maxTurns: 2 }), {
      groupSize: 1,
    });
    expect(group!.trajectories[0]).toMatchObject({ reward: -0.2, metrics: { turns: 2, is_done: false } });
  });

  it.each<[string, () => unknown, RegExp]>([
    ['hangs', () => undefined, /the environment http:.*\/reset failed: .*timeout/i],
    ['answers no JSON', () => 'hello', /\/reset failed: Unexpected token/],
    ['answers a list', () => [], /observation: expected an object of the environment .*, got nothing/],
    [
      'gives a reward that is none',
      () => ({ observation: {}, reward: 'x' }),
      /reward: expected a finite number or null/,
    ],
    ['does not say whether it is over', () => ({ observation: {}, done: 1 }), /done: expected true or false/],
  ])('that %s fails the attempt', async (fault, answer, message) => {
    const rollout = play([await serveGame(answer)], fault === 'hangs' ? { timeoutMs: 50 } : {});
    const [group] = await gatherTrajectoryGroups([1], rollout, { groupSize: 1, maxFailures: 1 });
    expect(group!.exceptions[0]!.message).toMatch(message);
  });

  it('has its options checked', () => {
    expect(() => play([])).toThrow('baseUrls: expected a non-empty list');
    expect(() => play(['http://x'], { turns: 3 })).toThrow('turns: not a field of options');
  });
});
