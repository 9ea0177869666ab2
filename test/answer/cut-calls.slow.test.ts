/** Calls of every format, cut at every place: the chunks joined are the whole answer, and nothing of the framing is content. */
import { describe, expect, it } from 'vitest';
import { MessageOut } from '../../src/answer/message-out.ts';
import { toResponse } from '../../src/answer/response.ts';
import type { MessagePlan } from '../../src/template/chat-format/index.ts';
import { functionsOf } from '../fakes/calls.ts';
import { FAMILY_ROWS } from '../template/tool-calls/families.ts';
import { TOOLS } from '../template/tool-calls/harness.ts';
import { ended, feed, newChoice, PLAIN, stopAt } from './choices.ts';

type Format = (typeof FAMILY_ROWS)[number]['format'];

const planOf = (format: Format, isForced: boolean): MessagePlan => ({
  ...PLAIN,
  tools: { format, definitions: TOOLS, refused: new Set(), custom: new Set(), parallel: true, isForced },
});

/** The message of a text in pieces: as it stands at the end, and as its deltas add up to. Ids are drawn, so they are left out. */
function read(plan: MessagePlan, pieces: readonly string[]) {
  const message = new MessageOut(plan);
  const sum = { content: '', calls: [] as { name: string; arguments: string }[] };
  const take = (): void => {
    const { content, toolCalls } = message.takeDelta();
    sum.content += content;
    for (const { index, function: part } of toolCalls) {
      sum.calls[index] ??= { name: part!.name!, arguments: '' };
      sum.calls[index].arguments += part!.arguments;
    }
  };
  for (const piece of pieces) {
    message.push(piece);
    take();
  }
  message.finish();
  take();
  return { whole: { content: message.content, calls: functionsOf(message.toolCalls) }, sum };
}

describe.each(FAMILY_ROWS.map((row) => [row.format, row] as const))('%s', (format, row) => {
  it.each([
    ['forced', true],
    ['free', false],
  ])('%s: every cut gives the same, whole and in deltas', (_, isForced) => {
    const plan = planOf(format, isForced);
    for (const text of [row.one, row.two]) {
      const full = read(plan, [text]).whole;
      const characters = [...text];
      for (let length = 0; length <= characters.length; length++) {
        const cut = characters.slice(0, length).join('');
        const { whole, sum } = read(plan, [cut]);
        expect(sum, cut).toEqual(whole);
        expect(
          read(
            plan,
            [...cut].flatMap((character) => character.split('')),
          ),
        ).toEqual({ whole, sum });
        if (isForced) expect(whole.content, cut).toBe('');
        for (const [index, call] of whole.calls.entries()) {
          expect(call.name).toBe(full.calls[index]!.name);
          expect(full.calls[index]!.arguments.startsWith(call.arguments), cut).toBe(true);
        }
      }
    }
  });

  it('a stop string inside the call ends it as a stop', () => {
    const choice = feed(
      newChoice({ message: planOf(format, true), rules: { ...stopAt('back'), maxTokens: 9999 } }),
      ended(row.one),
    );
    choice.catchUp();
    const header = {
      id: '',
      created: 0,
      model: '',
      systemFingerprint: '',
      drawnSeed: null,
      role: 'assistant',
      echo: '',
    } as const;
    const more = {
      usesFunctions: false,
      namesTool: false,
      promptText: null,
      promptIds: new Int32Array(0),
      promptTokens: 0,
      mediaTokens: null,
      returnTokenIds: false,
      wantsLogprobs: false,
      returnTimings: false,
      timesChunks: false,
      warnings: [],
    };
    const [fields, reportOf] = [() => ({}), () => ({})];
    const completion = { choices: [choice], cachedTokens: 0, usage: {}, fields, reportOf } as never;
    const [shown] = toResponse({ ...header, ...more }, completion).choices;
    expect(shown).toMatchObject({
      finish_reason: 'stop',
      stop_reason: 'back',
      message: { tool_calls: [{}] },
    });
  });
});
