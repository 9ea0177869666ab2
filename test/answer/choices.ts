/** Choices whose tokens are bytes, for tests of the stages after sampling. */
import { Choice, type ChoiceOptions } from '../../src/answer/choice.ts';
import { StopStrings } from '../../src/answer/stop-strings.ts';
import type { StopRules } from '../../src/answer/text-out.ts';
import type { MessagePlan } from '../../src/template/chat-format/index.ts';
import { bytes, byteTokenizer, EOS } from '../fakes/byte-tokenizer.ts';
import { sampledRows } from '../fakes/sampled-rows.ts';

/** Nothing ends a choice but the end token and 100 tokens. */
export const RULES: StopRules = {
  stops: null,
  stopIds: new Set(),
  endIds: byteTokenizer.endIds,
  eosId: EOS,
  ignoreEos: false,
  minTokens: 0,
  maxTokens: 100,
  includeStop: false,
  skipSpecial: true,
  shownSpecials: new Set(),
  spacesBetween: true,
};

/** Rules with these stop strings. */
export function stopAt(...strings: string[]): StopRules {
  return { ...RULES, stops: new StopStrings(strings) };
}

/** The text is the content. */
export const PLAIN: MessagePlan = { tools: null, reasoning: null, includeReasoning: true };

const WEATHER = { function: { name: 'weather', parameters: { type: 'object' } } };

/** Calls between `<tool_call>` tags. */
export const CALLS: MessagePlan = {
  ...PLAIN,
  tools: {
    format: 'hermes',
    definitions: [WEATHER],
    refused: new Set(),
    custom: new Set(),
    parallel: true,
    isForced: false,
  },
};

/** Reasoning between `<think>` tags. */
export const THINKING: MessagePlan = {
  ...PLAIN,
  reasoning: {
    format: { kind: 'tags', name: 'think', begin: '<think>', end: '</think>' },
    startsInside: false,
  },
};

/** A call of {@link CALLS}, as the model writes it. */
export const CALL = '<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>';

/** The ids of a text, ended. */
export function ended(text: string): number[] {
  return [...bytes(text), EOS];
}

/** A choice; its options but for those that are given are the plainest. */
export function newChoice(options: Partial<ChoiceOptions> = {}, index = 0): Choice {
  return new Choice(index, {
    rules: RULES,
    message: PLAIN,
    tokenizer: byteTokenizer,
    wantsLogprobs: false,
    repetition: null,
    tokensAsIds: false,
    onChange: () => {},
    ...options,
  });
}

/** Hands tokens to a choice until it ends. */
export function feed(choice: Choice, tokens: readonly number[]): Choice {
  const rows = sampledRows(tokens);
  for (const [row, token] of tokens.entries()) if (choice.onToken(token, rows, row, false)) break;
  return choice;
}
