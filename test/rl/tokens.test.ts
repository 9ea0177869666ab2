import { describe, expect, it } from 'vitest';
import { type ChatTokenizer, trajectoryTokens } from '../../src/rl/tokens.ts';
import type { MessagesAndChoices, Trajectory, TrajectoryMessage } from '../../src/rl/trajectory.ts';

// A turn is [role's letter, one id per letter of its text, 0]; an assistant's turn opens with 1. Tools add a leading 9.
const opener: Record<string, number> = { system: 3, user: 2, assistant: 1 };
const write = (message: TrajectoryMessage) => [
  opener[message.role]!,
  ...[...String(message.content)].map((letter) => letter.charCodeAt(0)),
  0,
];
const tokenizer: ChatTokenizer = {
  prompt: async (messages, tools) => [...(tools ? [9] : []), ...messages.flatMap(write), 1],
  conversation: async (messages, tools) => [...(tools ? [9] : []), ...messages.flatMap(write)],
  isEnd: (token) => token === 0,
};
const strict = { allowWithoutLogprobs: false };

const user = (content: string): TrajectoryMessage => ({ role: 'user', content });
const choice = (content: string, ids: number[] | null, logprobs: (number | null)[] | null, more = {}) => ({
  finish_reason: 'stop',
  index: 0,
  message: { role: 'assistant', content },
  token_ids: ids,
  logprobs: logprobs && { content: logprobs.map((logprob) => ({ token: 'x', logprob })) },
  ...more,
});
const trajectory = (
  messages_and_choices: MessagesAndChoices,
  more: Partial<Trajectory> = {},
): Trajectory => ({
  messages_and_choices,
  reward: 1,
  ...more,
});
const sequences = async (given: Trajectory, options = strict) =>
  (await trajectoryTokens(given, tokenizer, options)).map(({ tokens, isTrained, logprobs }) => ({
    tokens: [...tokens],
    isTrained: [...isTrained],
    logprobs: [...logprobs],
  }));

const A = 65;
const NaN_ = Number.NaN;

describe('trajectoryTokens', () => {
  it('trains on the sampled ids, not on the text', async () => {
    expect(await sequences(trajectory([user('A'), choice('B', [70, 71, 0], [-1, -2, -3])]))).toEqual([
      {
        tokens: [2, A, 0, 1, 70, 71, 0],
        isTrained: [0, 0, 0, 0, 1, 1, 1],
        logprobs: [NaN_, NaN_, NaN_, NaN_, -1, -2, -3],
      },
    ]);
  });

  it('takes ids out of the log-probabilities, and the prompt from the choice', async () => {
    const given = {
      ...choice('B', null, null),
      prompt_token_ids: [5, 6],
      logprobs: { content: [{ token: 'token_id:70', logprob: -0.5 }] },
    };
    expect(await sequences(trajectory([user('A'), given]))).toEqual([
      { tokens: [5, 6, 70], isTrained: [0, 0, 1], logprobs: [NaN_, NaN_, -0.5] },
    ]);
  });

  it('marks tokens without a log-probability as unknown, the last one too', async () => {
    expect(
      (await sequences(trajectory([user('A'), choice('B', [66, 67, 0], [-1, null])])))[0]!.logprobs.slice(4),
    ).toEqual([-1, NaN_, NaN_]);
  });

  it('keeps turns that extend each other in one sequence, and masks what lies between', async () => {
    const history = [user('A'), choice('B', [66, 0], [-1, -2]), user('C'), choice('D', [68, 0], [-3, -4])];
    expect(await sequences(trajectory(history))).toEqual([
      {
        tokens: [2, A, 0, 1, 66, 0, 2, 67, 0, 1, 68, 0],
        isTrained: [0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1],
        logprobs: [NaN_, NaN_, NaN_, NaN_, -1, -2, NaN_, NaN_, NaN_, NaN_, -3, -4],
      },
    ]);
  });

  it('splits where the next prompt does not repeat the sampled ids', async () => {
    const history = [user('A'), choice('B', [99, 0], [-1, -2]), user('C'), choice('D', [68, 0], [-3, -4])];
    expect(
      (await sequences(trajectory(history))).map(({ tokens, isTrained }) => [tokens, isTrained]),
    ).toEqual([
      [
        [2, A, 0, 1, 99, 0],
        [0, 0, 0, 0, 1, 1],
      ],
      [
        [2, A, 0, 1, 66, 0, 2, 67, 0, 1, 68, 0],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1],
      ],
    ]);
  });

  it("adds the sequences of additional histories, with their own tools or the trajectory's", async () => {
    const turn = [user('A'), choice('B', [66], [-1])];
    const given = trajectory(turn, {
      tools: [{}],
      additional_histories: [{ messages_and_choices: turn }, { messages_and_choices: turn, tools: [{}, {}] }],
    });
    expect((await sequences(given)).map(({ tokens }) => tokens)).toEqual(Array(3).fill([9, 2, A, 0, 1, 66]));
  });

  it('leaves plain assistant messages and later messages untrained', async () => {
    const history = [
      user('A'),
      { role: 'assistant', content: 'B' },
      user('C'),
      choice('D', [68], [-1]),
      user('E'),
    ];
    expect(
      (await sequences(trajectory(history))).map(({ tokens, isTrained }) => [
        tokens.length,
        isTrained.indexOf(1),
      ]),
    ).toEqual([[11, 10]]);
    expect(await sequences(trajectory([user('A')]))).toEqual([]);
  });

  it('tokenizes text only when asked to', async () => {
    const given = trajectory([user('A'), choice('BC', null, null)]);
    await expect(sequences(given)).rejects.toThrow(/no logprobs/);
    expect(await sequences(given, { allowWithoutLogprobs: true })).toEqual([
      { tokens: [2, A, 0, 1, 66, 67, 0], isTrained: [0, 0, 0, 0, 1, 1, 1], logprobs: Array(7).fill(NaN_) },
    ]);
  });

  it('tokenizes a prompt once, also to find its answer', async () => {
    const asked: number[] = [];
    const counting = {
      ...tokenizer,
      prompt: (...args: Parameters<ChatTokenizer['prompt']>) => {
        asked.push(args[0].length);
        return tokenizer.prompt(...args);
      },
    };
    const history = [user('A'), choice('B', null, null), user('C'), choice('D', null, null)];
    const found = await trajectoryTokens(trajectory(history), counting, { allowWithoutLogprobs: true });
    expect(found).toHaveLength(1);
    expect(asked).toEqual([1, 3]);
  });

  it('refuses log-probabilities without ids, or more of them than ids', async () => {
    await expect(sequences(trajectory([user('A'), choice('B', null, [-1])]))).rejects.toThrow(/no token ids/);
    await expect(sequences(trajectory([user('A'), choice('B', [66], [-1, -2])]))).rejects.toThrow(
      /1 token ids but .* 2/,
    );
  });
});
