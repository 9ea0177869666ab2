import { afterEach, describe, expect, it } from 'vitest';
import type { RuntimeOptions } from '../../../src/protocol/index.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { expectEqual, expectGolden } from './expect-golden.ts';
import {
  type Conversation,
  conversationsOf,
  KINDS,
  type Kind,
  openPair,
  pathOf,
  toRequest,
} from './golden.ts';

let runtime: Runtime;
afterEach(() => runtime?.close());

async function open(kind: Kind, options: RuntimeOptions = {}): Promise<Conversation[]> {
  runtime = await openPair(kind, options);
  return conversationsOf(kind);
}

const answerAll = async (conversations: readonly Conversation[]): Promise<void> => {
  const answers = await Promise.all(
    conversations.map((conversation) => runtime.createCompletion(toRequest(conversation))),
  );
  for (const [i, answer] of answers.entries()) expectGolden(answer, conversations[i]!);
};

describe.each(KINDS)('%s', (kind) => {
  it('gives the same answers four at once, in another order', async () => {
    const conversations = (await open(kind)).reverse();
    for (let i = 0; i < conversations.length; i += 4) await answerAll(conversations.slice(i, i + 4));
  });

  // Fused attention rounds to 16 bits, in another place in each batch size. With 32 bits the order of computing does not show.
  it.each<[string, (longest: number) => RuntimeOptions]>([
    ['in small steps', () => ({ maxBatchTokens: 13 })],
    ['after preemption', (longest) => ({ kvTokens: 2 * longest + 20, contextSize: longest + 20 })],
  ])('gives the same answers %s', async (_, options) => {
    const conversations = conversationsOf(kind).slice(0, 3);
    const precise = { model: { path: pathOf(kind), cacheBits: 32 } } as const;
    await open(kind, precise);
    const alone = [];
    for (const conversation of conversations)
      alone.push(await runtime.createCompletion(toRequest(conversation)));
    await runtime.close();
    const longest = Math.max(...conversations.map(({ prompt_tokens }) => prompt_tokens));
    await open(kind, { ...precise, ...options(longest) });
    for (let round = 0; round < 2; round++) {
      const answers = await Promise.all(
        conversations.map((conversation) => runtime.createCompletion(toRequest(conversation))),
      );
      for (const [i, answer] of answers.entries()) expectEqual(answer, alone[i]!);
    }
  });

  it.runIf(kind === 'gemma3')('gives the same answers with a small cache of its window', async () => {
    const conversations = (await open(kind)).slice(0, 4);
    await runtime.close();
    await open(kind, { model: { path: pathOf(kind), slidingWindow: 'window' }, maxSequences: 4 });
    await answerAll(conversations);
  });

  it('computes a second turn over the same media from its new text alone', async () => {
    const [conversation] = await open(kind);
    const first = await runtime.createCompletion(toRequest(conversation!));
    const { encodes } = runtime.mediaStats();
    expect(encodes).toBeGreaterThan(0);
    const { content } = first.choices[0]!.message;
    const messages = [
      ...conversation!.messages,
      { role: 'assistant', content },
      { role: 'user', content: 'and now?' },
    ] as Conversation['messages'];
    const second = await runtime.createCompletion(toRequest({ messages }));
    expect(runtime.mediaStats().encodes).toBe(encodes);
    const isReused = kind !== 'gemma3'; // its window of 32 tokens is shorter than the prompt, which is computed again
    expect(second.usage.prompt_tokens_details!.cached_tokens).toBeGreaterThanOrEqual(
      isReused ? first.usage.prompt_tokens - 20 : 0, // the begin of an answer is no part of the second prompt's first turn
    );
    await runtime.close();
    await open(kind, { prefixCache: false });
    const alone = await runtime.createCompletion(toRequest({ messages }));
    expect(alone.choices[0]!.token_ids).toEqual(second.choices[0]!.token_ids);
  });
});
