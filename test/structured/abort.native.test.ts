/** A request does not wait for the compilation of its constraint once it is aborted or its time is over; others that wait get it. */
import { expect, it } from 'vitest';
import { createMatchers } from '../../src/answer/constraint.ts';
import { limitedSignal } from '../../src/common/index.ts';
import type { LoadedModel } from '../../src/models/formats/index.ts';
import { compileChecked, createVocabulary, OWN_PATHS } from '../../src/structured/index.ts';

const bytes = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte));
const vocabulary = createVocabulary({ tokens: [...bytes, '<end>'], eosTokenIds: [256] });

/** A schema that takes some hundred milliseconds. */
const large = (title: string) => ({
  title,
  type: 'object',
  properties: Object.fromEntries(Array.from({ length: 6000 }, (_, i) => [`key_${i}`, { type: 'string' }])),
});

it('rejects while the compilation goes on for others', async () => {
  const spec = { json: large('a schema of two requests') };
  const controller = new AbortController();
  const settled: string[] = [];
  const note = (name: string) => (): void => void settled.push(name);
  const other = compileChecked(spec, vocabulary, OWN_PATHS).finally(note('compiled'));
  const aborted = compileChecked(spec, vocabulary, OWN_PATHS, controller.signal).finally(note('aborted'));
  controller.abort();
  await expect(aborted).rejects.toMatchObject({ code: 'ABORTED' });
  await expect(compileChecked(spec, vocabulary, OWN_PATHS, controller.signal)).rejects.toMatchObject({
    code: 'ABORTED',
  });
  expect((await other).createMatcher().isComplete()).toBe(false);
  expect(settled).toEqual(['aborted', 'compiled']);
});

it('is compiled once for the requests after an aborted one', async () => {
  const spec = { json: large('a schema of one request') };
  const controller = new AbortController();
  const aborted = compileChecked(spec, vocabulary, OWN_PATHS, controller.signal);
  controller.abort();
  await expect(aborted).rejects.toMatchObject({ code: 'ABORTED' });
  const one = await compileChecked(spec, vocabulary, OWN_PATHS);
  expect(await compileChecked(spec, vocabulary, OWN_PATHS)).toBe(one);
});

it('ends for a request before its matchers are made', async () => {
  const constraint = { spec: { json: large('a schema of an answer') }, paths: OWN_PATHS };
  const model = { vocabulary: async () => vocabulary } as LoadedModel;
  const settled: string[] = [];
  const note = (name: string) => (): void => void settled.push(name);
  const made = (signal?: AbortSignal) => createMatchers({ constraint, unused: null }, 1, model, signal);
  const other = made().finally(note('made'));
  using limited = limitedSignal(undefined, 1);
  await expect(made(limited.signal).finally(note('timed out'))).rejects.toMatchObject({
    code: 'TIMEOUT',
  });
  expect((await other).matchers).toHaveLength(1);
  expect(settled).toEqual(['timed out', 'made']);
});
