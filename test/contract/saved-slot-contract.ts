/** Contract of every backend about saved slots: it continues from them as from its own slots. */
import { describe, expect, it } from 'vitest';
import { type Backend, MEMORY_COPY } from '../../src/engine/backend/index.ts';
import { type drive, free } from './backend-driver.ts';

const PROMPT = [84, 104, 101, 32, 99, 97, 112, 105, 116, 97, 108];
const NEXT = [110, 111, 119];

/** Runs the contract on a backend that is driven. */
export function savedSlotContract(
  backend: () => Backend,
  { step, sampled, rowAfter, expectSame }: ReturnType<typeof drive>,
): void {
  describe('a saved slot', () => {
    it('continues in another slot as it would have in its own', async () => {
      await step([{ slot: 0, from: 0, tokens: PROMPT }], free(0));
      const state = await backend().saveSlot(new Int32Array(0), 0);
      await backend().loadSlot(Int32Array.from([...free(0), ...free(1)]), 1, state);
      const samples = [sampled({ topLogprobs: 2 })];
      const [row] = await step([{ slot: 1, from: PROMPT.length, tokens: NEXT, samples }]);
      expectSame(row!, await rowAfter([...PROMPT, ...NEXT]));
    });

    it('in two pieces, too, where caches can be cut and are not copied', async ({ skip }) => {
      const { isKvUnified, rollbackTokens, savedWindow } = backend();
      skip(!isKvUnified || rollbackTokens !== Infinity || savedWindow > 0, 'pieces are not saved here');
      await step([{ slot: 0, from: 0, tokens: PROMPT }], free(0));
      const cut = PROMPT.length >> 1;
      const copy = (from: number, to: number) => Int32Array.from([...free(2), MEMORY_COPY, 0, 2, from, to]);
      const head = await backend().saveSlot(copy(0, cut), 2);
      const tail = await backend().saveSlot(copy(cut, PROMPT.length), 2);
      const empty = [...free(0), ...free(1), ...free(2)];
      await backend().loadSlot(Int32Array.from(empty), 1, head);
      await backend().loadSlot(new Int32Array(0), 2, tail);
      const join = [MEMORY_COPY, 2, 1, cut, PROMPT.length, ...free(2)];
      const samples = [sampled({ topLogprobs: 2 })];
      const [row] = await step([{ slot: 1, from: PROMPT.length, tokens: NEXT, samples }], join);
      expectSame(row!, await rowAfter([...PROMPT, ...NEXT]));
    });

    it('of another kind fails with KV_FULL and leaves the slot empty', async () => {
      const loaded = backend().loadSlot(Int32Array.from(free(1)), 1, Uint8Array.from([255, 1, 2]));
      await expect(loaded).rejects.toMatchObject({ code: 'KV_FULL' });
      const [row] = await step([
        { slot: 1, from: 0, tokens: PROMPT, samples: [sampled({ topLogprobs: 2 })] },
      ]);
      expectSame(row!, await rowAfter(PROMPT));
    });
  });
}
