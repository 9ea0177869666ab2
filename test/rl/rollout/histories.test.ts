/** Requests of one rollout -> conversations, with each choice trained in exactly one of them. */
import { describe, expect, it } from 'vitest';
import type { Message, Tool, TrajectoryChoice } from '../../../src/protocol/index.ts';
import { historiesOf } from '../../../src/rl/rollout/histories.ts';

const tool = (name: string): Tool => ({ type: 'function', function: { name } });

/** `u: text` is a user's message, `a: text` an assistant's, `t: text` a tool's. */
function message(text: string): Message {
  const role = { u: 'user', a: 'assistant', t: 'tool' }[text[0]!]!;
  return { role, content: text.slice(3) } as Message;
}

const choice = (content: string): TrajectoryChoice => ({
  index: 0,
  finish_reason: 'stop',
  message: { role: 'assistant', content },
});

const exchange = (messages: readonly (string | Message)[], answers: string, tools: Tool[] | null = null) => ({
  messages: messages.map((one) => (typeof one === 'string' ? message(one) : one)),
  tools,
  choices: answers.split('|').map(choice),
});

/** Histories as text: choices in brackets. */
const show = (exchanges: Parameters<typeof historiesOf>[0]) =>
  historiesOf(exchanges).map(({ messages_and_choices }) =>
    messages_and_choices
      .map((entry) => ('message' in entry ? `[${entry.message.content}]` : textOf(entry)))
      .join(' '),
  );
const textOf = ({ content }: Message) => (typeof content === 'string' ? content : JSON.stringify(content));

describe('histories', () => {
  it.each([
    ['one turn', [exchange(['u: 1'], 'A')], ['1 [A]']],
    ['two turns', [exchange(['u: 1'], 'A'), exchange(['u: 1', 'a: A', 'u: 2'], 'B')], ['1 [A] 2 [B]']],
    [
      'a rewritten answer begins a conversation',
      [exchange(['u: 1'], 'A'), exchange(['u: 1', 'a: a', 'u: 2'], 'B')],
      ['1 [A]', '1 a 2 [B]'],
    ],
    [
      'a rewritten question begins a conversation',
      [exchange(['u: 1'], 'A'), exchange(['u: one', 'a: A', 'u: 2'], 'B')],
      ['1 [A]', 'one A 2 [B]'],
    ],
    [
      'a branch repeats what it shares as context',
      [
        exchange(['u: 1'], 'A'),
        exchange(['u: 1', 'a: A', 'u: 2'], 'B'),
        exchange(['u: 1', 'a: A', 'u: 3'], 'C'),
        exchange(['u: 1', 'a: A', 'u: 3', 'a: C', 'u: 4'], 'D'),
      ],
      ['1 [A] 2 [B]', '1 A 3 [C] 4 [D]'],
    ],
    [
      'choices of one request',
      [exchange(['u: 1'], 'A|B'), exchange(['u: 1', 'a: B', 'u: 2'], 'C')],
      ['1 [A]', '1 [B] 2 [C]'],
    ],
    ['the same twice', [exchange(['u: 1'], 'A'), exchange(['u: 1'], 'A')], ['1 [A]', '1 [A]']],
    [
      'two agents in turns',
      [
        exchange(['u: 1'], 'A'),
        exchange(['u: x'], 'X'),
        exchange(['u: 1', 'a: A', 'u: 2'], 'B'),
        exchange(['u: x', 'a: X', 'u: y'], 'Y'),
      ],
      ['1 [A] 2 [B]', 'x [X] y [Y]'],
    ],
    [
      'other tools begin a conversation',
      [exchange(['u: 1'], 'A', [tool('f')]), exchange(['u: 1', 'a: A', 'u: 2'], 'B', [tool('g')])],
      ['1 [A]', '1 A 2 [B]'],
    ],
    [
      'text in parts is the same text',
      [
        exchange(['u: 1'], 'AB'),
        exchange(
          [
            { role: 'user', content: [{ type: 'text', text: '1' }] },
            {
              role: 'assistant',
              content: [
                { type: 'text', text: 'A' },
                { type: 'text', text: 'B' },
              ],
            },
            'u: 2',
          ],
          'C',
        ),
      ],
      ['[{"type":"text","text":"1"}] [AB] 2 [C]'],
    ],
  ])('%s', (_, exchanges, expected) => {
    expect(show(exchanges)).toEqual(expected);
  });

  it('read a message that many requests share once', () => {
    let reads = 0;
    const shared: Message[] = [];
    const exchanges = Array.from({ length: 50 }, (_, turn) => {
      const answer = choice(`A${turn}`);
      const question = { role: 'user', content: '' } as Message;
      Object.defineProperty(question, 'content', {
        enumerable: true,
        get: () => {
          reads += 1;
          return `Q${turn}`;
        },
      });
      shared.push(question);
      const asked = { messages: [...shared], tools: null, choices: [answer] };
      shared.push(answer.message as Message);
      return asked;
    });
    const [history, ...others] = historiesOf(exchanges);
    expect(others).toEqual([]);
    expect(history!.messages_and_choices.filter((entry) => 'message' in entry)).toHaveLength(50);
    expect(reads).toBe(50);
  });

  it('know a call by its name and arguments, however they are written', () => {
    const calls = (id: string, text: string) => [
      { id, type: 'function' as const, function: { name: 'f', arguments: text } },
    ];
    const first = {
      messages: [message('u: 1')],
      tools: null,
      choices: [
        { ...choice(''), message: { role: 'assistant', content: null, tool_calls: calls('1', '{"a": 1}') } },
      ],
    };
    const again: Message = { role: 'assistant', content: '', tool_calls: calls('2', '{"a":1}') };
    const histories = historiesOf([first, exchange(['u: 1', again, 't: 1'], 'B')]);
    expect(histories).toHaveLength(1);
    expect(
      historiesOf([first, exchange(['u: 1', { ...again, tool_calls: calls('1', '{"a":2}') }], 'B')]),
    ).toHaveLength(2);
  });
});
