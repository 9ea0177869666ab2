/** Any value in place of a request, and the same over the wire. test/extremes has single fields, one and two at a time. */
import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { OnpolicyError } from '../../src/errors.ts';
import {
  checkAndAdmitChat,
  checkListQuery,
  checkLogRequest,
  checkModelCreateRequest,
  checkTrainingJobRequest,
} from '../../src/protocol/index.ts';
import { definitions } from '../../src/protocol/schemas/index.ts';

vi.setConfig({ testTimeout: 60_000 });

const fields = Object.keys(definitions['ChatCompletionRequest']!.properties!);

function holds(check: () => unknown): void {
  try {
    check();
  } catch (error) {
    expect(error).toBeInstanceOf(OnpolicyError);
    const { code, detail, cause } = error as OnpolicyError;
    expect(code).toBe('INVALID_REQUEST');
    expect(cause, 'only inputs that throw by themselves have a cause').toBeUndefined();
    for (const one of detail!) {
      expect(one.msg.length).toBeLessThan(400);
      expect(one.loc.every((step) => typeof step === 'string')).toBe(true);
    }
  }
}

it('any JSON and any value is valid or refused', () => {
  const checks = [
    checkAndAdmitChat,
    checkTrainingJobRequest,
    checkLogRequest,
    checkListQuery,
    checkModelCreateRequest,
  ];
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), fc.anything()), fc.constantFrom(...checks), (input, check) =>
      holds(() => check(input, { wire: true })),
    ),
    { numRuns: 1000 },
  );
});

it('what is valid stays valid when it goes over the wire', () => {
  const written = fc.jsonValue({ maxDepth: 2 }).map((some) => JSON.parse(JSON.stringify(some)) as unknown); // no -0
  const few = fc.dictionary(fc.constantFrom(...fields), written, { maxKeys: 4 });
  fc.assert(
    fc.property(few, (some) => {
      const input = { messages: [{ role: 'user', content: 'a' }], ...some };
      let normal: unknown;
      try {
        normal = checkAndAdmitChat(input);
      } catch {
        return;
      }
      expect(checkAndAdmitChat(JSON.parse(JSON.stringify(input)), { wire: true })).toEqual(normal);
    }),
    { numRuns: 1000 },
  );
});
