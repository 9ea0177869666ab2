/** `onpolicy transcribe`: a sound -> what is said in it, on the terminal. */
import fs from 'node:fs/promises';
import { readArguments, wrongUsage } from './arguments.ts';
import { COMMON, openRuntime, SAMPLING, toRequest } from './model-arguments.ts';
import { printJson, type Terminal } from './terminal.ts';

const { system: _, ...SETTINGS } = SAMPLING;

/** Writes the transcript of one file. */
export async function transcribe(words: readonly string[], terminal: Terminal): Promise<void> {
  const { options, names } = readArguments(words, {
    ...COMMON,
    ...SETTINGS,
    language: 'text',
    prompt: 'text',
  });
  const [sound, ...more] = names;
  if (sound === undefined || more.length > 0) throw wrongUsage('transcribe: expected one file with a sound');
  const file = await fs.readFile(sound).catch((cause: Error) => {
    throw wrongUsage(`transcribe: cannot read ${sound}: ${cause.message}`);
  });
  await using runtime = await openRuntime(options, terminal);
  const { language, prompt } = options;
  const request = { ...toRequest(options), file, language, prompt };
  if (options.json) return printJson(terminal, await runtime.transcribe(request));
  for await (const event of await runtime.transcribe({ ...request, stream: true }))
    if (event.type === 'transcript.text.delta') terminal.output.write(event.delta);
  terminal.output.write('\n');
}
