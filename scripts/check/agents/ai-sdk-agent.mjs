// A model's name and a prompt -> the text of an agent on AI SDK's default provider, whose conversation a file keeps.
import { execSync } from 'node:child_process';
import fs from 'node:fs';
import { createOpenAI } from '@ai-sdk/openai';
import { stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';

const [model, prompt, resumes] = process.argv.slice(2);
const file = `${process.env.HOME}/conversation.json`;
const run = tool({
  description: 'Runs a shell command',
  inputSchema: z.object({ command: z.string() }),
  execute: ({ command }) => execSync(command, { encoding: 'utf8' }),
});
const messages = [
  ...(resumes ? JSON.parse(fs.readFileSync(file, 'utf8')) : []),
  { role: 'user', content: prompt },
];
const controller = new AbortController();
process.once('SIGINT', () => controller.abort());
const ask = async () => {
  let failure = null;
  const { textStream, response } = streamText({
    model: createOpenAI()(model),
    messages,
    tools: { run },
    stopWhen: stepCountIs(9),
    abortSignal: controller.signal,
    onError: ({ error }) => {
      failure = error;
    },
  });
  for await (const text of textStream) process.stdout.write(text);
  if (failure) throw failure;
  return (await response).messages;
};
try {
  fs.writeFileSync(file, JSON.stringify([...messages, ...(await ask())]));
} catch (error) {
  const shown = JSON.stringify([error.message, error.data, error.cause]);
  process.stderr.write(`${shown.includes('context_length_exceeded') ? 'the context is full' : shown}\n`);
  process.exitCode = 1;
}
