/** `onpolicy complete`: a prompt -> its answer on the terminal. */
import type { ChatCompletionRequest, Service } from '../index.ts';
import { command, readFile, texts, wrongUsage } from './arguments.ts';
import { COMMON, openRuntime, SAMPLING, toRequest } from './model-arguments.ts';
import { printJson, readAll, type Terminal } from './terminal.ts';

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

/** A file as a part of a message. */
async function toPicture(file: string) {
  const bytes = await readFile('--image', file);
  return { type: 'image_url', image_url: { url: `data:;base64,${bytes.toString('base64')}` } } as const;
}

export function systemMessages(text: string | undefined): ChatCompletionRequest['messages'][number][] {
  return text === undefined ? [] : [{ role: 'system', content: text }];
}

/** Streams an answer to the terminal; returns it as a whole, or what came of it until `signal` fired. */
export async function streamAnswer(
  service: Pick<Service, 'createCompletion'>,
  request: ChatCompletionRequest,
  { output }: Terminal,
  signal?: AbortSignal,
): Promise<string> {
  let text = '';
  try {
    const stream = await service.createCompletion({ ...request, stream: true }, signal ? { signal } : {});
    for await (const { choices } of stream) {
      const delta = choices[0]?.delta.content ?? '';
      text += delta;
      output.write(delta);
    }
  } catch (error) {
    if (!signal?.aborted) throw error;
  }
  output.write('\n');
  return text;
}
