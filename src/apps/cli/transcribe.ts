/** `onpolicy transcribe`: a sound -> its transcript, on the terminal. */
import { command, readFile, text } from './arguments.ts';
import { COMMON, openRuntime, SAMPLING, toRequest } from './model-arguments.ts';
import { printJson } from './terminal.ts';

const { system: _, ...SETTINGS } = SAMPLING;

export const transcribe = command({
  name: 'transcribe',
  words: '<sound>',
  about: 'the transcript of a WAV, MP3 or FLAC file',
  options: {
    ...SETTINGS,
    language: text('L', 'of the speech, such as en or pt-BR (default: the model detects it)'),
    prompt: text('T', 'names and words that occur in the speech'),
    ...COMMON,
  },
  async run({ options, names: [sound] }, terminal) {
    const file = await readFile('transcribe', sound!, 'onpolicy transcribe');
    await using runtime = await openRuntime(options, terminal);
    const { language, prompt } = options;
    const request = { ...toRequest(options), file, language, prompt };
    if (options.json) return printJson(terminal, await runtime.transcribe(request));
    for await (const event of await runtime.transcribe({ ...request, stream: true }))
      if (event.type === 'transcript.text.delta') terminal.output.write(event.delta);
    terminal.output.write('\n');
  },
});
