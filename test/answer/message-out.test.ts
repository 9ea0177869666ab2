import { describe, expect, it } from 'vitest';
import { MessageOut } from '../../src/answer/message-out.ts';
import type { MessagePlan } from '../../src/template/chat-format/index.ts';
import { functionsOf } from '../fakes/calls.ts';
import { CALL, CALLS, PLAIN, THINKING } from './choices.ts';

type Calls = [name: string, args: string][];

/** Reads a message from pieces. Returns the whole message, and the sum of the deltas taken after each piece. */
function read(plan: MessagePlan, pieces: readonly string[]) {
  const message = new MessageOut(plan);
  const sum = { content: '', reasoning: '', calls: [] as Calls };
  const take = (): void => {
    const delta = message.takeDelta();
    sum.content += delta.content;
    sum.reasoning += delta.reasoning;
    for (const { index, function: call } of delta.toolCalls) {
      sum.calls[index] ??= [call?.name ?? '', ''];
      sum.calls[index]![1] += call?.arguments ?? '';
    }
  };
  for (const piece of pieces) {
    message.push(piece);
    take();
  }
  message.finish();
  take();
  const { content, reasoning, toolCalls, hasBrokenCall, isParsed } = message;
  const calls = functionsOf(toolCalls).map((call): Calls[number] => [call.name, call.arguments]);
  return { whole: { content, reasoning, calls }, sum, hasBrokenCall, isParsed };
}

const ROME: Calls = [['weather', '{"city": "Rome"}']];
const INSIDE = { ...THINKING, reasoning: { ...THINKING.reasoning!, startsInside: true } };
const HIDDEN = { ...THINKING, includeReasoning: false };
const BOTH = { ...THINKING, tools: CALLS.tools };
const ONE_CALL = { ...CALLS, tools: { ...CALLS.tools!, parallel: false } };

describe('a message', () => {
  it.each<[string, MessagePlan, string, { content?: string; reasoning?: string; calls?: Calls }]>([
    ['plain text is content', PLAIN, `<think>a</think>${CALL}`, { content: `<think>a</think>${CALL}` }],
    ['no text', BOTH, '', {}],
    ['reasoning before the content', THINKING, '<think>why</think>so', { reasoning: 'why', content: 'so' }],
    ['reasoning that the prompt has opened', INSIDE, 'why</think>so', { reasoning: 'why', content: 'so' }],
    ['reasoning that never ends', INSIDE, 'why', { reasoning: 'why' }],
    ['reasoning that is not wanted', HIDDEN, '<think>why</think>so', { content: 'so' }],
    ['one call', CALLS, CALL, { calls: ROME }],
    ['two calls', CALLS, `${CALL}\n${CALL}`, { calls: [...ROME, ...ROME] }],
    ['the second of two calls where one is allowed', ONE_CALL, `${CALL}\n${CALL}`, { calls: ROME }],
    ['content before a call', CALLS, `Look: ${CALL}`, { content: 'Look: ', calls: ROME }],
    ['a call after reasoning', BOTH, `<think>why</think>${CALL}`, { reasoning: 'why', calls: ROME }],
    [
      'a call inside reasoning is reasoning',
      BOTH,
      `<think>${CALL}</think>so`,
      { reasoning: CALL, content: 'so' },
    ],
  ])('%s', (_, plan, text, expected) => {
    const wanted = { content: '', reasoning: '', calls: [], ...expected };
    for (const pieces of [[text], [...text]]) {
      const { whole, sum } = read(plan, pieces);
      expect(whole).toEqual(wanted);
      expect(sum).toEqual(wanted);
    }
  });

  it('a call that never ends is broken, and stays as far as it came', () => {
    const text = CALL.slice(0, -20);
    const { whole, sum, hasBrokenCall } = read(CALLS, [...text]);
    expect(whole).toEqual(sum);
    expect(whole).toMatchObject({ content: '' });
    expect(whole.calls).toHaveLength(1);
    expect(hasBrokenCall).toBe(true);
  });

  it.each([
    [PLAIN, false],
    [CALLS, true],
    [THINKING, true],
  ])('plan %#: whether more than content is looked for', (plan, expected) => {
    expect(read(plan, []).isParsed).toBe(expected);
  });
});
