/** `onpolicy bench`: a model -> tokens per second of one request and of several at once. */
import type { Runtime } from '../index.ts';
import { command, text, wrongUsage } from './arguments.ts';
import { COMMON, MODEL, openRuntime } from './model-arguments.ts';
import { print, printJson, printTable } from './terminal.ts';

const TOKENS = 64;
const MOST_SEQUENCES = 1024;

const EMBEDDED_NOTE =
  'This is the embedded model: so small that several requests at once gain little. --model M measures one of yours';

/** Measures tokens per second and time to the first token. */
export const bench = command({
  name: 'bench',
  about: 'how fast this machine answers one request, and several at once',
  options: {
    model: MODEL,
    sequences: text('LIST', 'how many at once (default: 1,8)'),
    ...COMMON,
  },
  async run({ options }, terminal) {
    const counts = (options.sequences ?? '1,8').split(',').map(Number);
    if (!counts.every((count) => Number.isInteger(count) && count > 0 && count <= MOST_SEQUENCES))
      throw wrongUsage(
        `--sequences: expected integers up to ${MOST_SEQUENCES}, like 1,8, got ${options.sequences}`,
      );
    await using runtime = await openRuntime(options, terminal);
    await measure(runtime, options.model, 1); // loads the model
    const results = [];
    for (const count of counts) results.push(await measure(runtime, options.model, count));
    if (options.json) return printJson(terminal, results);
    printTable(terminal, [
      ['at once', 'tokens/s', 'first token'],
      ...results.map(({ sequences, tokens_per_second, first_token_ms }) => [
        String(sequences),
        tokens_per_second.toFixed(1),
        `${first_token_ms.toFixed(0)} ms`,
      ]),
    ]);
    if (options.model === undefined) print(terminal, EMBEDDED_NOTE);
  },
});

async function measure(runtime: Runtime, model: string | undefined, sequences: number) {
  const startMs = performance.now();
  let firstMs = 0;
  let tokenCount = 0;
  const answer = async (seed: number) => {
    const stream = await runtime.createCompletion({
      model,
      messages: [{ role: 'user', content: 'Tell me a story.' }],
      max_completion_tokens: TOKENS,
      ignore_eos: true,
      seed,
      stream: true,
      stream_options: { include_usage: true },
    });
    for await (const { usage } of stream) {
      firstMs ||= performance.now() - startMs;
      tokenCount += usage?.completion_tokens ?? 0;
    }
  };
  await Promise.all(Array.from({ length: sequences }, (_, seed) => answer(seed)));
  const seconds = (performance.now() - startMs) / 1000;
  return { sequences, tokens_per_second: tokenCount / seconds, first_token_ms: firstMs };
}
