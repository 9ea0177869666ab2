/** `onpolicy transcribe`: a sound -> what is said in it, on the terminal. */
import fs from 'node:fs/promises';
import { command, type Given, text, wrongUsage } from './arguments.ts';
import { COMMON, openRuntime, SAMPLING, toRequest } from './model-arguments.ts';
import { printJson, type Terminal } from './terminal.ts';

const { system: _, ...SETTINGS } = SAMPLING;
const FLAGS = {
  ...SETTINGS,
  language: text('L', 'of the speech, as en or pt-BR (default: the model finds out)'),
  prompt: text('T', 'names and words that occur in it'),
  ...COMMON,
} as const;

/** Writes the transcript of one file. */
export const transcribe = command(
  { name: 'transcribe', words: '<sound>', about: 'what is said in a WAV, MP3 or FLAC file', options: FLAGS },
  run,
);

async function run({ options, names: [sound] }: Given<typeof FLAGS>, terminal: Terminal): Promise<void> {
  const file = await fs.readFile(sound!).catch((cause: Error) => {
    throw wrongUsage(`transcribe: cannot read ${sound}: ${cause.message}`, 'onpolicy transcribe');
  });
  await using runtime = await openRuntime(options, terminal);
  const { language, prompt } = options;
  const request = { ...toRequest(options), file, language, prompt };
  if (options.json) return printJson(terminal, await runtime.transcribe(request));
  for await (const event of await runtime.transcribe({ ...request, stream: true }))
    if (event.type === 'transcript.text.delta') terminal.output.write(event.delta);
  terminal.output.write('\n');
}
