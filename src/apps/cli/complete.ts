/** `onpolicy complete`: a prompt -> its answer on the terminal. */
import type { ChatCompletionRequest } from '../../index.ts';
import { command, readFile, texts, wrongUsage } from './arguments.ts';
import { COMMON, openRuntime, SAMPLING, toRequest } from './model-arguments.ts';
import { streamAnswer } from './print-answer.ts';
import { printJson, readAll } from './terminal.ts';

/** Answers one prompt: the words of the command line, or standard input. */
export const complete = command({
  name: 'complete',
  words: '[prompt...]',
  about: 'one answer; without a prompt it is read from the input',
  options: { ...SAMPLING, image: texts('FILE', 'before the prompt; may be repeated'), ...COMMON },
  async run({ options, names }, terminal) {
    const prompt = names.length > 0 ? names.join(' ') : (await readAll(terminal.input)).trim();
    if (prompt === '') throw wrongUsage('complete: expected a prompt, got nothing', 'onpolicy complete');
    await using runtime = await openRuntime(options, terminal);
    const pictures = await Promise.all(options.image.map(toPicture));
    const content = pictures.length === 0 ? prompt : [...pictures, { type: 'text', text: prompt } as const];
    const messages = [...systemMessages(options.system), { role: 'user', content }] as const;
    if (options.json)
      printJson(terminal, await runtime.createCompletion({ ...toRequest(options), messages }));
    else await streamAnswer(runtime, { ...toRequest(options), messages }, terminal);
  },
});

/** Returns a file as a part of a message. */
async function toPicture(file: string) {
  const bytes = await readFile('--image', file);
  return { type: 'image_url', image_url: { url: `data:;base64,${bytes.toString('base64')}` } } as const;
}

export function systemMessages(text: string | undefined): ChatCompletionRequest['messages'][number][] {
  return text === undefined ? [] : [{ role: 'system', content: text }];
}
