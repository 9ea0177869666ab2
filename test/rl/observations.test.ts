/** Messages after a choice -> the tokens that a job learns as observations, with templates of real models. */
import { describe, expect, it } from 'vitest';
import { planData } from '../../src/rl/datum.ts';
import { observedSpans } from '../../src/rl/observations.ts';
import { packRows } from '../../src/rl/pack.ts';
import { type ChatTokenizer, type TokenOptions, trajectoryTokens } from '../../src/rl/tokens.ts';
import type { MessagesAndChoices, TrajectoryMessage } from '../../src/rl/trajectory.ts';
import { compileChatTemplate } from '../../src/template/index.ts';
import { randomNumbers } from '../fakes/random-numbers.ts';
import { dataFile, GOLDEN_NOW, readGolden } from '../template/helpers.ts';

const codesOf = (text: string) => Array.from(text, (letter) => letter.codePointAt(0)!);
const textOf = (tokens: ArrayLike<number>) =>
  Array.from(tokens, (code) => String.fromCodePoint(code)).join('');
/** A tokenizer whose tokens are the letters of what a function writes. */
const lettersOf = (
  write: (messages: readonly TrajectoryMessage[], isOpen: boolean) => string,
): ChatTokenizer => ({
  prompt: async (messages) => codesOf(write(messages, true)),
  conversation: async (messages) => codesOf(write(messages, false)),
  isEnd: () => false,
});
const plain = lettersOf(
  (messages, isOpen) =>
    messages.map(({ role, content }) => `<${role}>${content}.`).join('') + (isOpen ? '<assistant>' : ''),
);
const choice = (content: string, more: object = {}) => ({
  finish_reason: 'stop' as const,
  index: 0,
  message: { role: 'assistant', content },
  token_ids: codesOf(`${content}.`),
  logprobs: { content: codesOf(`${content}.`).map(() => ({ token: 'x', logprob: -1 })) },
  ...more,
});

/** Returns the observed parts of each sequence with their weights. */
async function observedOf(
  messages_and_choices: MessagesAndChoices,
  observationWeights: TokenOptions['observationWeights'],
  tokenizer = plain,
) {
  const options = { allowWithoutLogprobs: false, observationWeights };
  const found = await trajectoryTokens({ messages_and_choices, reward: 1 }, tokenizer, options);
  return found.map(({ tokens, observationWeights: weights, isTrained }) => {
    const parts: [string, number][] = [];
    for (const [i, weight] of weights?.entries() ?? []) {
      if (weight === 0) continue;
      expect(isTrained[i]).toBe(0);
      const letter = textOf([tokens[i]!]);
      if (i > 0 && weights![i - 1] === weight) parts.at(-1)![0] += letter;
      else parts.push([letter, weight]);
    }
    return parts;
  });
}

const user = (content: unknown) => ({ role: 'user', content });
const tool = (content: unknown) => ({ role: 'tool', tool_call_id: 'a', content });

describe('observations', () => {
  const history = [
    { role: 'system', content: 'Be brief' },
    user('task'),
    { role: 'assistant', content: 'an example' },
    tool('of the task'),
    choice('act'),
    tool('rain'),
    user('go on'),
    choice('again'),
    { role: 'assistant', content: 'words' },
    tool('sun'),
    choice('end'),
    tool('never seen'),
  ];

  it.each<[string, TokenOptions['observationWeights'], [string, number][]]>([
    ['no weights', null, []],
    ['no roles', {}, []],
    ['weights of 0', { tool: 0, user: null }, []],
    [
      'tools',
      { tool: 0.5 },
      [
        ['rain', 0.5],
        ['sun', 0.5],
      ],
    ],
    ['users', { user: 2 }, [['go on', 2]]],
    [
      'three roles',
      { tool: 0.5, user: 2, assistant: 3 },
      [
        ['rain', 0.5],
        ['go on', 2],
        ['words', 3],
        ['sun', 0.5],
      ],
    ],
    ['a role that is absent', { developer: 1 }, []],
  ])('are the texts after a choice: %s', async (_, weights, expected) => {
    expect(await observedOf(history, weights)).toEqual([expected]);
  });

  it.each<[string, unknown, string[]]>([
    ['what the template also writes', 'tool', ['tool']],
    ['a letter', 'x', ['x']],
    ['letters of the replacement', 'xyzx', ['xyzx']],
    ['the end of a message', '.', ['.']],
    ['nothing', '', []],
    ['no content', null, []],
    ['the name of an object member', 'constructor', ['constructor']],
  ])('may be %s', async (_, content, expected) => {
    const parts = await observedOf([user('x'), choice('y'), tool(content), choice('z')], { tool: 1 });
    expect(parts).toEqual([expected.map((text) => [text, 1])]);
  });

  it('are learned where they are first seen, if a template rewrites what came before', async () => {
    const rewriting = lettersOf((messages) =>
      messages
        .map(({ role, content }, i) =>
          role === 'assistant' && i < messages.length - 1 ? '<gone>' : `<${role}>${content}.`,
        )
        .join(''),
    );
    const turns = [
      user('task'),
      choice('one'),
      tool('first'),
      choice('two'),
      tool('second'),
      choice('three'),
    ];
    expect(await observedOf(turns, { tool: 1 }, rewriting)).toEqual([[], [['first', 1]], [['second', 1]]]);
  });

  it('are found in prompts that were written with other settings', async () => {
    const said = '<user>task.<assistant>act.<tool>42.<assistant><think></think>';
    const turns = [user('task'), choice('act'), tool('42'), choice('z', { prompt_token_ids: codesOf(said) })];
    expect(await observedOf(turns, { tool: 1 })).toEqual([[['42', 1]]]);
    const short = [
      user('42'),
      choice('42'),
      tool('4'),
      choice('z', { prompt_token_ids: codesOf('4<tool>4!4') }),
    ];
    expect((await observedOf(short, { tool: 1 })).at(-1)).toEqual([['4', 1]]);
    const other = [
      user('task'),
      choice('act'),
      tool('rain'),
      choice('z', { prompt_token_ids: codesOf(said) }),
    ];
    await expect(observedOf(other, { tool: 1 })).rejects.toThrow(
      'observation_weights: the prompt_token_ids of a choice do not have the messages before it as the template writes them',
    );
    expect(await observedOf(other, { user: 1 })).toEqual([[]]);
  });

  it('are those with the longest equal text before them, the last of several', async () => {
    const next = randomNumbers(4);
    const drawn = (most: number) =>
      Array.from({ length: Math.floor(next() * (most + 1)) }, () => (next() < 0.6 ? 'a' : 'b')).join('');
    const find = (text: string, before: string, elsewhere: string) => {
      const messages = [user(before), tool(text)];
      const write = async (all: readonly TrajectoryMessage[]) =>
        codesOf(all.map(({ content }) => content).join(''));
      const prompt = { messages, since: 1, tokens: codesOf(elsewhere), isWritten: false, write };
      return observedSpans(prompt, { tool: 1 });
    };
    for (let i = 0; i < 500; i++) {
      const [text, before, elsewhere] = [`a${drawn(3)}`, drawn(8), drawn(30)];
      const commonBefore = (at: number): number => {
        let length = 0;
        while (length < Math.min(at, before.length) && before.at(-1 - length) === elsewhere[at - 1 - length])
          length++;
        return length;
      };
      const places = Array.from(elsewhere, (_, at) => at).filter((at) => elsewhere.startsWith(text, at));
      const most = Math.max(...places.map(commonBefore));
      const last = places.findLast((at) => commonBefore(at) === most);
      if (last === undefined) await expect(find(text, before, elsewhere)).rejects.toThrow(/prompt_token_ids/);
      else
        expect(await find(text, before, elsewhere)).toEqual([
          { from: last, to: last + text.length, weight: 1 },
        ]);
    }
    const begin = process.cpuUsage().user;
    await find('a'.repeat(1e5), 'a'.repeat(1e5), 'a'.repeat(2e5)); // each place of some agrees with all before it
    expect(process.cpuUsage().user - begin).toBeLessThan(3e6);
  });

  it('are refused where data have no messages', () => {
    const input = { model_input: { chunks: [{ tokens: [1] }] }, loss_fn_inputs: { target_tokens: [2] } };
    const loss_fn_config = { experimental_config: { observation_weights: { tool: 1 } } };
    const data = { data: [input], loss_fn: 'policy' as const, loss_fn_config };
    expect(() => planData(data, { vocabSize: 10, contextSize: 16 }, null as never, false)).toThrow(
      'loss_fn_config.experimental_config.observation_weights: expected null: data have no messages',
    );
  });

  it('take no place of their own in rows, and follow the targets of the policy', async () => {
    const [sequence] = await trajectoryTokens(
      { messages_and_choices: [user('t'), choice('a'), tool('r'), choice('b')], reward: 1 },
      plain,
      { allowWithoutLogprobs: false, observationWeights: { tool: 0.5 } },
    );
    const rowsOf = (isTrained: Uint8Array) =>
      packRows([{ ...sequence!, isTrained, group: 0, advantage: 2, weight: 1 }], 64).rows;
    const [{ row, advantages, observations }] = rowsOf(sequence!.isTrained) as [ReturnType<typeof rowsOf>[0]];
    expect(textOf(row.targetTokens)).toBe('a.b.r');
    expect(textOf(row.logitRows.map((i) => row.tokens[i]!))).toBe('>a>b>');
    expect([...advantages]).toEqual([2, 2, 2, 2]);
    expect(observations).toEqual({ weights: Float64Array.of(0.5), sequenceIds: Int32Array.of(0) });
    expect(textOf(rowsOf(new Uint8Array(row.tokens.length))[0]!.row.targetTokens)).toBe('r');
  });
});

const golden = dataFile('golden-dev.jsonl');
it.skipIf(golden === null)('are the texts alone in the templates of real models', async () => {
  const callWith = (given: unknown) => [
    { id: 'a23456789', type: 'function', function: { name: 'look', arguments: given } },
  ];
  const asked = { role: 'assistant', content: 'Looking', tool_calls: callWith('{"at":"sky"}') };
  const text = 'Zebra 41: "striped",\n it runs';
  const templates = new Map(readGolden(golden!).map((row) => [row.template_id, row]));
  const seen = { tool: 0, user: 0 };
  for (const [id, { template, args }] of templates) {
    const compiled = compileChatTemplate(template);
    const { bosToken, eosToken } = args;
    const write = (given: readonly TrajectoryMessage[], addGenerationPrompt: boolean) => {
      const read = (message: TrajectoryMessage) => ({ ...message, tool_calls: callWith({ at: 'sky' }) });
      const messages = given.map((message) => ('tool_calls' in message ? read(message) : message)) as never;
      return compiled.render(
        { messages, addGenerationPrompt, bosToken, eosToken },
        { now: () => GOLDEN_NOW },
      );
    };
    for (const [role, observation] of [
      ['tool', { role: 'tool', tool_call_id: 'a23456789', name: 'look', content: text }],
      ['user', user(text)],
    ] as const) {
      const first = role === 'tool' ? { ...choice('Looking'), message: asked } : choice('Looking');
      let written: string;
      try {
        written = write([user('Go'), first.message, observation], true);
      } catch {
        continue; // a template without this role
      }
      // If a template writes the text as it is, that is the whole observation: found by its letters, not by replacing it.
      if (written.split(text).length !== 2) continue;
      const parts = await observedOf(
        [user('Go'), first, observation, choice('End')],
        { [role]: 1 },
        lettersOf(write),
      );
      expect(parts.flat(), `${id}, ${role}`).toEqual([[text, 1]]);
      seen[role]++;
    }
  }
  expect(seen.tool).toBeGreaterThan(35);
  expect(seen.user).toBeGreaterThan(55);
});
