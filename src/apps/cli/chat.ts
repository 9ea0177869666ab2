/** `onpolicy chat`: lines of input -> a conversation on the terminal. */
import path from 'node:path';
import { createInterface } from 'node:readline/promises';
import { messageOf } from '../../errors.ts';
import type { Runtime, Service } from '../../index.ts';
import { command, type Given } from './arguments.ts';
import { systemMessages } from './complete.ts';
import { COMMON, openRuntime, SAMPLING, toRequest } from './model-arguments.ts';
import { streamAnswer } from './print-answer.ts';
import { isWatched, print, type Terminal } from './terminal.ts';

const FLAGS = { ...SAMPLING, ...COMMON } as const;

const COMMANDS = `/system TEXT  another system message, and a new conversation
/reset        a new conversation
/exit         the end; so does Ctrl+D. Ctrl+C stops an answer`;

/** A conversation: a line of input, then an answer, until the input ends. */
export const chat = command({
  name: 'chat',
  about: 'a conversation on the terminal; /help lists its commands',
  options: FLAGS,
  async run({ options }, terminal) {
    await using runtime = await openRuntime(options, terminal);
    if (isWatched(terminal.errors) && !options.json) await introduce(runtime, options.model, terminal);
    await converse(runtime, options, terminal);
  },
});

/** Loads the model before the first prompt, and names it. */
async function introduce(runtime: Runtime, model: string | undefined, { errors }: Terminal): Promise<void> {
  const contextSize = await runtime.contextSize(model);
  const card = (await runtime.isRegistered(model ?? '')) ? null : await runtime.modelCard(model);
  const { 'general.name': called = card && path.basename(card.path) } = card?.metadata ?? {};
  const name = model ?? called;
  const facts = [name, called === name ? '' : called, card?.weightType, `context of ${contextSize} tokens`];
  errors.write(`${facts.filter(Boolean).join(', ')}; /help lists the commands\n`);
}

/** Writes an answer as a line of JSON; returns its text. */
const printAnswer: typeof streamAnswer = async (service, request, terminal, signal) => {
  const whole = await service.createCompletion({ ...request, stream: false }, signal ? { signal } : {});
  print(terminal, JSON.stringify(whole));
  return whole.choices[0]?.message.content ?? '';
};

/** `service` answers. A line that begins with `/` is a command; `//` begins a message with one. */
export async function converse(
  service: Pick<Service, 'createCompletion'>,
  options: Given<typeof FLAGS>['options'],
  terminal: Terminal,
): Promise<void> {
  const lines = createInterface({
    input: terminal.input,
    output: terminal.errors,
    terminal: isWatched(terminal.errors), // gives the input line a history
    prompt: options.json ? '' : '> ',
  });
  let ended = false; // piped input ends before its lines are answered; a prompt is then an error
  lines.once('close', () => {
    ended = true;
  });
  let system = options.system;
  let messages = systemMessages(system);
  let answering: AbortController | null = null;
  const interrupt = (): void => {
    if (answering === null) lines.close();
    else answering.abort();
  };
  lines.on('SIGINT', interrupt);
  process.on('SIGINT', interrupt); // for terminals that report no keys

  const commands: Readonly<Record<string, (argument: string) => void>> = {
    '/exit': () => lines.close(),
    '/reset': () => {
      messages = systemMessages(system);
    },
    '/system': (argument) => {
      system = argument || undefined;
      messages = systemMessages(system);
    },
    '/help': () => void terminal.errors.write(`${COMMANDS}\n`),
  };
  const answer = async (content: string): Promise<void> => {
    const request = { ...toRequest(options), messages: [...messages, { role: 'user' as const, content }] };
    answering = new AbortController();
    try {
      const ask = options.json ? printAnswer : streamAnswer;
      const text = await ask(service, request, terminal, answering.signal);
      messages = [...request.messages, { role: 'assistant', content: text }];
    } catch (error) {
      if (!lines.terminal) throw error; // ends a script
      terminal.errors.write(`${messageOf(error)}\n`);
    } finally {
      answering = null;
    }
  };
  try {
    lines.prompt();
    for await (const line of lines) {
      const [name, rest = ''] = line.trim().split(/\s+(.*)/s);
      if (name!.startsWith('/') && !name!.startsWith('//')) {
        const run = Object.hasOwn(commands, name!) ? commands[name!] : undefined;
        if (run) run(rest);
        else terminal.errors.write(`${name} is not a command\n${COMMANDS}\n`);
        if (name === '/exit') break;
      } else if (name !== '') await answer(line.replace(/^\s*\/\//, '/'));
      if (!ended) lines.prompt();
    }
  } finally {
    lines.close();
    process.off('SIGINT', interrupt);
  }
}
