/** Chats and answers longer than the context: what is dropped, and that what is left says the same as if it had been asked for alone. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tokensToDrop, withoutDropped } from '../../src/answer/context-shift.ts';
import type { ChatCompletionChunk, ChatCompletionRequest } from '../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { EXACT_MODEL, PLAIN } from './fields/model.ts';

const CONTEXT = 64;
let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({
    model: { path: EXACT_MODEL, chatTemplate: PLAIN },
    models: { drawing: 'onpolicy-tiny' },
    threads: 1,
    contextSize: CONTEXT,
    maxSequences: 4,
  });
});
afterAll(() => runtime.close());

describe('tokens to drop', () => {
  it.each([
    ['none while one more fits', 63, 0, 0],
    ['half of a full context', 64, 0, 32],
    ['half of what is not kept', 64, 24, 20],
    ['several halves of a long prompt', 140, 0, 96],
  ])('%s', (_, length, keep, expected) => {
    const dropped = tokensToDrop(length, { keep, contextSize: 64 });
    expect(dropped).toBe(expected);
    expect(length - dropped).toBeLessThan(64);
  });

  it('are those behind what is kept', () => {
    expect([...withoutDropped(Int32Array.of(1, 2, 3, 4, 5), 1, 2)]).toEqual([1, 4, 5]);
  });
});

const PROMPT = [1, 20, 30, 40];
const LONG = { prompt: PROMPT, max_tokens: 150, ignore_eos: true, seed: 3, temperature: 1 };

/** The tokens that requests without a shift give, each with what the one before has left. */
async function inParts(keep: number): Promise<number[]> {
  const sampled: number[] = [];
  let context: Int32Array = Int32Array.from(PROMPT);
  while (sampled.length < LONG.max_tokens) {
    const { choices } = await runtime.createTextCompletion({
      ...LONG,
      prompt: [...context],
      temperature: 0,
      max_tokens: Math.min(CONTEXT - context.length, LONG.max_tokens - sampled.length),
      return_token_ids: true,
    });
    const ids = choices[0]!.token_ids!;
    sampled.push(...ids);
    context = Int32Array.from([...context, ...ids]);
    context = withoutDropped(context, keep, tokensToDrop(context.length, { keep, contextSize: CONTEXT }));
  }
  return sampled;
}

describe('an answer', () => {
  it.each([0, 4, 20])('goes on with what is left, with n_keep %i', async (n_keep) => {
    const { choices, usage } = await runtime.createTextCompletion({
      ...LONG,
      temperature: 0,
      context_shift: true,
      n_keep,
      return_token_ids: true,
    });
    const [choice] = choices;
    expect(choice!.token_ids).toEqual(await inParts(n_keep));
    expect(choice!.finish_reason).toBe('length');
    expect(usage.completion_tokens).toBe(150);
    const { kept_tokens, dropped_tokens } = choice!.context_shift!;
    expect(kept_tokens).toBe(n_keep);
    expect(PROMPT.length + 150 - dropped_tokens).toBeLessThanOrEqual(CONTEXT);
  });

  it('is the same streamed, beside others, with n and drafts', async () => {
    const asked = { ...LONG, context_shift: true, n_keep: 4, n: 3, return_token_ids: true };
    const whole = await runtime.createTextCompletion({ ...asked, speculation: false });
    const found = whole.choices.map(() => [] as number[]);
    const shifts: unknown[] = [];
    for await (const { choices } of await runtime.createTextCompletion({ ...asked, stream: true }))
      for (const { index, token_ids, context_shift } of choices) {
        found[index]!.push(...(token_ids ?? []));
        if (context_shift) shifts[index] = context_shift;
      }
    expect(found).toEqual(whole.choices.map(({ token_ids }) => token_ids));
    expect(shifts).toEqual(whole.choices.map(({ context_shift }) => context_shift));
    const drafted = await runtime.createTextCompletion({
      ...asked,
      speculation: { method: 'ngram' } as never,
    });
    expect(drafted.choices.map(({ token_ids }) => token_ids)).toEqual(found);
  });

  it('stays under its grammar, also where tokens are forced', async () => {
    const { choices } = await runtime.createTextCompletion({
      ...LONG,
      context_shift: true,
      structured_outputs: { regex: '(abcdefgh[0-9]){40}' },
      max_tokens: 500,
    });
    expect(choices[0]!.text).toMatch(/^(abcdefgh[0-9]){40}$/);
    expect(choices[0]!.context_shift!.dropped_tokens).toBeGreaterThan(0);
  });

  it('ends where it is left', async () => {
    const stream = await runtime.createTextCompletion({ ...LONG, context_shift: true, stream: true });
    let chunks = 0;
    for await (const _ of stream) if (++chunks > 80) break;
    await expect.poll(() => runtime.stats()).toMatchObject({ running: 0, waiting: 0 });
  });
});

describe('a chat', () => {
  const messages: ChatCompletionRequest['messages'] = [
    { role: 'system', content: 'abcdefgh' },
    ...Array.from({ length: 40 }, (_, i) => ({ role: 'user' as const, content: `turn ${i} ` })),
  ];

  it('longer than the context keeps the system and the last turns, and says what it dropped', async () => {
    const asked = { messages, max_tokens: 2, ignore_eos: true, return_token_ids: true } as const;
    await expect(runtime.createCompletion(asked)).rejects.toMatchObject({ code: 'CONTEXT_OVERFLOW' });
    const { choices, prompt_token_ids, usage } = await runtime.createCompletion({
      ...asked,
      context_shift: true,
    });
    const system = await runtime.tokenize('abcdefgh');
    const { kept_tokens, dropped_tokens } = choices[0]!.context_shift!;
    expect(kept_tokens).toBeGreaterThanOrEqual(system.length - 1);
    expect(prompt_token_ids!.slice(0, kept_tokens)).toEqual(system.slice(0, kept_tokens));
    const whole = await runtime.tokenize(messages.map(({ content }) => content).join(''));
    expect(prompt_token_ids!.slice(kept_tokens)).toEqual(whole.slice(kept_tokens + dropped_tokens));
    expect(usage.prompt_tokens).toBe(whole.length - dropped_tokens);
  });

  it('streams it, with the drop in the last chunk', async () => {
    const chunks: ChatCompletionChunk[] = [];
    const asked = { messages, max_tokens: 2, ignore_eos: true, context_shift: true, stream: true as const };
    for await (const chunk of await runtime.createCompletion(asked)) chunks.push(chunk);
    const last = chunks.flatMap(({ choices }) => choices).at(-1)!;
    expect(last.context_shift!.dropped_tokens).toBeGreaterThan(0);
  });
});

it.each<[string, Partial<ChatCompletionRequest>, object]>([
  ['beams', { use_beam_search: true, n: 2 }, { param: 'use_beam_search' }],
  ['hooks', { logits_processors: [() => {}] as never }, { param: 'logits_processors' }],
  ['a prompt cut otherwise', { truncate_prompt_tokens: 4 }, { param: 'truncate_prompt_tokens' }],
  ['more than half the context kept', { n_keep: 33 }, { param: 'n_keep' }],
  ['tokens kept of nothing dropped', { context_shift: false, n_keep: 3 }, { param: 'n_keep' }],
])('refuses %s', async (_, more, expected) => {
  const request = { messages: [{ role: 'user' as const, content: 'a' }], context_shift: true, ...more };
  await expect(runtime.createCompletion(request)).rejects.toMatchObject({
    code: 'INVALID_REQUEST',
    ...expected,
  });
});
