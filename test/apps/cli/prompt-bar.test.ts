/** Progress of a prompt -> what a terminal shows of it, and what a file gets. */
import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { streamAnswer } from '../../../src/apps/cli/print-answer.ts';

const progress = (processed: number, time_ms: number) => ({
  choices: [],
  prompt_progress: { total: 8000, cache: 0, processed, time_ms },
});

/** Returns the output of an answer that begins so long after these reports, and whether the request asked for them. */
async function shown(isTTY: boolean, reports: readonly object[], waitMs = 0) {
  const [output, errors] = [new PassThrough(), Object.assign(new PassThrough(), { isTTY })];
  let asked = false;
  async function* stream() {
    yield { choices: [{ delta: { role: 'assistant', content: '' } }] };
    yield* reports;
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    yield { choices: [{ delta: { content: 'Yes.' } }] };
  }
  const service = {
    createCompletion: async ({ return_progress }: { return_progress?: boolean }) => {
      asked = return_progress === true;
      return stream();
    },
  };
  const messages = [{ role: 'user' as const, content: 'x' }];
  const text = await streamAnswer(
    service as never,
    { messages },
    { output, errors, input: new PassThrough() },
  );
  return { asked, text, output: String(output.read()), errors: String(errors.read() ?? '') };
}

const LINE = '\r\x1b[2K';
/** A line that a narrow terminal cuts. */
const cut = (line: string): string => `\x1b[?7l${line}\x1b[?7h`;
const REPORTS = [progress(0, 0), progress(512, 200), progress(2048, 900), progress(8000, 4000)];

describe('the bar of a prompt', () => {
  it('is drawn once the prompt takes a while, and gone before the answer', async () => {
    const { asked, text, output, errors } = await shown(true, REPORTS);
    expect([asked, text, output]).toEqual([true, 'Yes.', 'Yes.\n']);
    expect(errors.split(LINE)).toEqual([
      '',
      cut(`${'█'.repeat(7)}${'░'.repeat(23)}  25 %  2,048 of 8,000 tokens read`),
      cut(`${'█'.repeat(30)}  100 %  8,000 of 8,000 tokens read`),
      '',
    ]);
  });

  it('is drawn while the first step takes long', async () => {
    const { errors } = await shown(true, REPORTS.slice(0, 1), 400);
    expect(errors.split(LINE)).toEqual(['', cut(`${'░'.repeat(30)}  0 %  0 of 8,000 tokens read`), '']);
  });

  it('is not drawn for a short prompt, nor into a file', async () => {
    expect((await shown(true, REPORTS.slice(0, 2))).errors).toBe('');
    expect(await shown(false, [])).toEqual({ asked: false, text: 'Yes.', output: 'Yes.\n', errors: '' });
  });
});
