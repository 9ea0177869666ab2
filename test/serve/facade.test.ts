/** Calls of a facade ask for room in the queue of their model, if they wait in it, before their request is read. */
import { expect, it } from 'vitest';
import { OnpolicyError } from '../../src/errors.ts';
import type { MethodName } from '../../src/protocol/service/index.ts';
import { callMethod } from '../../src/serve/checked-calls.ts';
import { Facade } from '../../src/serve/index.ts';

/** A service whose queues are all full. */
class Full extends Facade {
  protected ask(name: MethodName): MethodName {
    return name;
  }
  protected requireOpen(): void {}
  protected override requireRoom(reference: unknown): void {
    throw new OnpolicyError('OVERLOADED', `the queue of ${reference} is full`);
  }
  async close(): Promise<void> {}
}

const QUEUED = [
  'createCompletion',
  'createTextCompletion',
  'createEmbeddings',
  'rerank',
  'score',
  'classify',
  'decide',
] as const;

it.each(QUEUED)('%s is refused while the queue is full', async (name) => {
  const full = { code: 'OVERLOADED', message: 'the queue of small is full' };
  await expect(callMethod(new Full(), name, { model: 'small' })).rejects.toMatchObject(full);
});

it('prompts are rendered while the queue is full', async () => {
  const messages = [{ role: 'user', content: 'hello' }] as const;
  expect(await new Full().renderPrompt({ model: 'small', messages: [...messages] })).toBe('renderPrompt');
});
