import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { KvLedger } from '../../src/engine/kv-ledger.ts';

const SLOTS = 5;

type Action =
  | { readonly kind: 'append'; readonly slot: number; readonly length: number }
  | { readonly kind: 'share'; readonly slot: number; readonly to: number; readonly length: number }
  | { readonly kind: 'truncate'; readonly slot: number; readonly length: number };

const slot = fc.integer({ min: 0, max: SLOTS - 1 });
const length = fc.integer({ min: 0, max: 9 });
const action: fc.Arbitrary<Action> = fc.oneof(
  fc.record({ kind: fc.constant('append' as const), slot, length: fc.integer({ min: 1, max: 9 }) }),
  fc.record({ kind: fc.constant('share' as const), slot, to: slot, length }),
  fc.record({ kind: fc.constant('truncate' as const), slot, length }),
);

describe('KvLedger', () => {
  it.each([true, false])('counts cells like lists of cells do (unified: %s)', (isKvUnified) => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 40 }), (actions) => {
        const ledger = new KvLedger(10_000, SLOTS, isKvUnified);
        const lists: object[][] = Array.from({ length: SLOTS }, () => []);
        for (const step of actions) {
          const cells = lists[step.slot]!;
          if (step.kind === 'append') {
            ledger.append(step.slot, step.length);
            for (let i = 0; i < step.length; i++) cells.push({});
          } else if (step.kind === 'truncate') {
            ledger.truncate(step.slot, step.length);
            cells.length = Math.min(cells.length, step.length);
          } else if (
            step.to !== step.slot &&
            lists[step.to]!.length === 0 &&
            step.length > 0 &&
            step.length <= cells.length
          ) {
            ledger.share(step.slot, step.to, step.length);
            lists[step.to] = cells.slice(0, step.length).map((cell) => (isKvUnified ? cell : {}));
          }
          expect(ledger.used).toBe(new Set(lists.flat()).size);
          expect(ledger.free).toBe(10_000 - ledger.used);
        }
        for (let at = 0; at < SLOTS; at++) expect(ledger.lengthOf(at)).toBe(lists[at]!.length);
        expect(ledger.usedBy([0, 2])).toBe(new Set([...lists[0]!, ...lists[2]!]).size);
      }),
      { numRuns: 500 },
    );
  });
});
