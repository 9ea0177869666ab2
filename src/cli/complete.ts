/** `onpolicy complete` and `onpolicy chat`: prompts -> answers on the terminal. */
import fs from 'node:fs/promises';
import { createInterface } from 'node:readline/promises';
import type { ChatCompletionRequest, Runtime } from '../index.ts';
import { readArguments, wrongUsage } from './arguments.ts';
import { COMMON, openRuntime, SAMPLING, toRequest } from './model-arguments.ts';
import { print, printJson, readAll, type Terminal } from './terminal.ts';

type Messages = ChatCompletionRequest['messages'];

/** Answers one prompt: the words of the command line, or standard input. */
export async function complete(words: readonly string[], terminal: Terminal): Promise<void> {
  const { options, names } = readArguments(words, { ...COMMON, ...SAMPLING, image: 'texts' });
  const prompt = names.length > 0 ? names.join(' ') : (await readAll(terminal.input)).trim();
  if (prompt === '') throw wrongUsage('complete: expected a prompt, got nothing');
  await using runtime = await openRuntime(options, terminal);
  const pictures = await Promise.all(options.image.map(toPicture));
  const content = pictures.length === 0 ? prompt : [...pictures, { type: 'text', text: prompt } as const];
  const messages = [...systemMessages(options.system), { role: 'user', content }] as const;
  if (options.json) printJson(terminal, await runtime.createCompletion({ ...toRequest(options), messages }));
  else await streamAnswer(runtime, { ...toRequest(options), messages }, terminal);
}

/** A conversation: a line of input, then an answer, until the input ends. */
export async function chat(words: readonly string[], terminal: Terminal): Promise<void> {
  const { options, names } = readArguments(words, { ...COMMON, ...SAMPLING });
  if (names.length > 0) throw wrongUsage(`chat: expected no words, got ${names.join(' ')}`);
  await using runtime = await openRuntime(options, terminal);
  const lines = createInterface({
    input: terminal.input,
    output: terminal.errors,
    prompt: options.json ? '' : '> ',
  });
  let ended = false; // piped input ends before its lines are answered, and from then on a prompt is an error
  lines.once('close', () => {
    ended = true;
  });
  const messages: Messages[number][] = [...systemMessages(options.system)];
  lines.prompt();
  for await (const line of lines) {
    if (line.trim() !== '') {
      messages.push({ role: 'user', content: line });
      const request = { ...toRequest(options), messages };
      if (options.json) {
        const answer = await runtime.createCompletion(request);
        print(terminal, JSON.stringify(answer));
        messages.push({ role: 'assistant', content: answer.choices[0]?.message.content ?? '' });
      } else messages.push({ role: 'assistant', content: await streamAnswer(runtime, request, terminal) });
    }
    if (!ended) lines.prompt();
  }
}

/** A file as a part of a message. */
async function toPicture(file: string) {
  const bytes = await fs.readFile(file).catch((cause: Error) => {
    throw wrongUsage(`--image: cannot read ${file}: ${cause.message}`);
  });
  return { type: 'image_url', image_url: { url: `data:;base64,${bytes.toString('base64')}` } } as const;
}

function systemMessages(text: string | undefined): Messages[number][] {
  return text === undefined ? [] : [{ role: 'system', content: text }];
}

/** Streams an answer to the terminal; returns it as a whole. */
async function streamAnswer(
  runtime: Runtime,
  request: ChatCompletionRequest,
  { output }: Terminal,
): Promise<string> {
  let text = '';
  for await (const { choices } of await runtime.createCompletion({ ...request, stream: true })) {
    const delta = choices[0]?.delta.content ?? '';
    text += delta;
    output.write(delta);
  }
  output.write('\n');
  return text;
}
