/** Lines of input -> a conversation, with its commands and an answer that is stopped. */
import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { converse } from '../../../src/apps/cli/chat.ts';

type Asked = { readonly messages: readonly { readonly role: string; readonly content: string }[] };

const OPTIONS = { system: 'Be brief.', json: false } as Parameters<typeof converse>[1];

/** Types lines one after the other, each when the answer before is there. `hang`: a message that gets no end. */
async function talk(lines: readonly string[], hang?: string) {
  const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const asked: string[][] = [];
  async function* stream(content: string, signal: AbortSignal | undefined) {
    yield { choices: [{ delta: { content: `${content}!` } }] };
    if (content !== hang) return;
    const aborted = new Promise((_, reject) =>
      signal!.addEventListener('abort', () => reject(new Error('stop'))),
    );
    setImmediate(() => process.emit('SIGINT'));
    await aborted;
  }
  const service = {
    createCompletion: async ({ messages }: Asked, { signal }: { signal?: AbortSignal }) => {
      asked.push(messages.map(({ role, content }) => `${role}: ${content}`));
      return stream(messages.at(-1)!.content, signal);
    },
  };
  input.end(lines.map((line) => `${line}\n`).join(''));
  await converse(service as never, OPTIONS, { input, output, errors });
  return { asked, output: String(output.read() ?? ''), errors: String(errors.read() ?? '') };
}

it('keeps the conversation, and begins another one', async () => {
  const { asked, output } = await talk(['a', 'b', '/reset', 'c', '/system Rhyme.', 'd', '/system', '//e']);
  expect(asked).toEqual([
    ['system: Be brief.', 'user: a'],
    ['system: Be brief.', 'user: a', 'assistant: a!', 'user: b'],
    ['system: Be brief.', 'user: c'],
    ['system: Rhyme.', 'user: d'],
    ['user: /e'],
  ]);
  expect(output).toBe('a!\nb!\nc!\nd!\n/e!\n');
});

it('ends with /exit, and knows its commands', async () => {
  const { asked, errors } = await talk(['/help', '/exti', '/exit', 'a']);
  expect(asked).toEqual([]);
  expect(errors).toMatch(/\/reset .*a new conversation[\s\S]*\/exti is not a command/);
});

it('goes on after Ctrl+C in an answer, with what came of it', async () => {
  const listeners = process.listenerCount('SIGINT');
  const { asked, output } = await talk(['a', 'b'], 'a');
  expect(asked[1]).toEqual(['system: Be brief.', 'user: a', 'assistant: a!', 'user: b']);
  expect(output).toBe('a!\nb!\n');
  expect(process.listenerCount('SIGINT')).toBe(listeners);
});
