/** Streams of answers -> what a terminal and a pipe show: reasoning, its end, cut answers, lines broken between words. */
import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { streamAnswer } from '../../../src/apps/cli/print-answer.ts';
import { columnsOf, Wrapper } from '../../../src/apps/cli/wrap.ts';

type Part = { readonly reasoning?: string; readonly content?: string; readonly finish?: string };

/** Streams `parts`; `columns` are those of a terminal, absent for pipes. */
async function shown(parts: readonly Part[], request: object = {}, columns?: number) {
  async function* stream() {
    for (const { finish = null, ...delta } of parts) yield { choices: [{ delta, finish_reason: finish }] };
  }
  const terminal = columns === undefined ? {} : { isTTY: true, columns };
  const output = Object.assign(new PassThrough(), terminal);
  const errors = Object.assign(new PassThrough(), terminal);
  const service = { createCompletion: async () => stream() };
  const input = new PassThrough();
  const text = await streamAnswer(service as never, request as never, { input, output, errors });
  return { text, output: String(output.read() ?? ''), errors: String(errors.read() ?? '') };
}

it('writes reasoning beside the answer as it comes, and where it ends', async () => {
  const parts = [
    { reasoning: 'Peru? ' },
    { reasoning: 'Lima.' },
    { content: 'It is ' },
    { content: 'Lima.', finish: 'stop' },
  ];
  const piped = await shown(parts);
  expect(piped).toEqual({
    text: 'It is Lima.',
    output: 'It is Lima.\n',
    errors: 'thinking: Peru? Lima.\n',
  });
  const { output, errors } = await shown(parts, {}, 80);
  expect(output).toBe('It is Lima.\n');
  expect(errors).toBe('\x1b[2mthinking: Peru? Lima.\x1b[0m\n\n');
});

it('says that an answer ended while the model was thinking, and what to raise', async () => {
  const thinking = [{ reasoning: 'Let me see' }, { finish: 'length' }];
  const { output, errors } = await shown(thinking, { max_completion_tokens: 3 });
  expect(output).toBe('\n');
  expect(errors).toMatch(/ended while the model was thinking: --max-tokens is 3; a larger one/);
  expect((await shown(thinking)).errors).toMatch(/thinking: prompt and answer fill the context/);
  const cut = await shown([{ content: 'It is' }, { finish: 'length' }], { max_completion_tokens: 2 });
  expect(cut.errors).toBe('the answer was cut: --max-tokens is 2; a larger one lets it go on\n');
});

it('breaks lines between words, wherever the pieces of the text are cut', () => {
  const words = fc.stringMatching(/^([a-z東é🙂]{1,9}[ \n]{1,2}){0,12}$/u);
  fc.assert(
    fc.property(
      words,
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 20, max: 30 }),
      (text, size, width) => {
        const wrapper = new Wrapper(() => width);
        const letters = [...text];
        let out = '';
        for (let at = 0; at < letters.length; at += size)
          out += wrapper.add(letters.slice(at, at + size).join(''));
        out += wrapper.flush();
        expect(out.replace(/\s+/g, ' ').trim()).toBe(text.replace(/\s+/g, ' ').trim());
        for (const line of out.split('\n')) expect(columnsOf(line.trimEnd())).toBeLessThanOrEqual(width);
      },
    ),
  );
  expect(columnsOf('\x1b[2m東🙂é\x1b[0m')).toBe(5);
});

it('leaves long words, indented lines and pipes as they are', async () => {
  const wrap = (text: string) => {
    const wrapper = new Wrapper(() => 10);
    return wrapper.add(text) + wrapper.flush();
  };
  expect(wrap('if (a)\n    b();\n\nelse')).toBe('if (a)\n    b();\n\nelse');
  expect(wrap('see https://example.com/a/long/path now')).toBe('see\nhttps://example.com/a/long/path\nnow');
  const long = 'word '.repeat(40).trim();
  expect(stripVTControlCharacters((await shown([{ content: long }])).output)).toBe(`${long}\n`);
});
