import { afterAll, beforeAll, describe, it } from 'vitest';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { expectGolden } from './expect-golden.ts';
import { conversationsOf, KINDS, openPair, toRequest } from './golden.ts';

describe.each(KINDS)('%s', (kind) => {
  const conversations = conversationsOf(kind);
  let runtime: Runtime;
  beforeAll(async () => {
    runtime = await openPair(kind);
  }, 600_000);
  afterAll(() => runtime?.close());

  it.each(conversations.map((conversation) => [conversation.case, conversation] as const))(
    'conversation %i',
    async (_, conversation) => {
      expectGolden(await runtime.createCompletion(toRequest(conversation)), conversation);
    },
  );
});
