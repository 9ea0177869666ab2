/** Runs a command of the CLI in this process and gives what it wrote. */
import { PassThrough, Readable } from 'node:stream';
import { run } from '../../../src/apps/cli/run.ts';

/** Runs `words`, with `input` typed in. */
export async function command(words: readonly string[], input = '') {
  const [output, errors] = [new PassThrough(), new PassThrough()];
  const exitCode = await run(words, { input: Readable.from([Buffer.from(input)]), output, errors });
  const text = (stream: PassThrough) => String(stream.read() ?? '');
  return { exitCode, output: text(output), errors: text(errors) };
}
