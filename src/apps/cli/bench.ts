/** `onpolicy bench`: a model -> tokens per second of one request and of several at once. */
import type { Runtime } from '../../index.ts';
import { command, flag, text, wrongUsage } from './arguments.ts';
import { COMMON, MODEL, openRuntime } from './model-arguments.ts';
import { syntheticModel } from './synthetic.ts';
import { print, printResult, printTable } from './terminal.ts';

const TOKENS = 64;
const MOST_SEQUENCES = 1024;

const EMBEDDED_NOTE =
  'This is the embedded model: so small that several requests at once gain little. --synthetic measures a full-size one, --model M one of yours';

type Question = { readonly seed: number; readonly content: string };

/** Measures tokens per second and time to the first token. */
export const bench = command({
  name: 'bench',
  about: 'how fast this machine answers one request, and several at once',
  options: {
    model: MODEL,
    synthetic: flag(
      "a model of Qwen3-0.6B's shape with random weights, a file of 640 MB that is written once",
    ),
    sequences: text('LIST', 'how many at once (default: 1,8)'),
    ...COMMON,
  },
  async run({ options }, terminal) {
    const counts = (options.sequences ?? '1,8').split(',').map(Number);
    if (!counts.every((count) => Number.isInteger(count) && count > 0 && count <= MOST_SEQUENCES))
      throw wrongUsage(
        `--sequences: expected integers up to ${MOST_SEQUENCES}, like 1,8, got ${options.sequences}`,
      );
    if (options.synthetic && options.model !== undefined)
      throw wrongUsage('--synthetic: expected no --model, whose model it replaces');
    const model = options.synthetic ? await syntheticModel() : options.model;
    await using runtime = await openRuntime({ ...options, model }, terminal);
    let asked = 0;
    const question = () => ({ seed: ++asked, content: `Tell me story number ${asked}.` });
    await measure(runtime, model, [question()]); // loads the model
    const results = [];
    for (const count of counts)
      results.push(await measure(runtime, model, Array.from({ length: count }, question)));
    const [{ kernels } = { kernels: 'plain' }] = runtime.stats().kernels;
    const [{ threads } = { threads: 0 }] = runtime.stats().threads;
    const [{ name } = { name: '' }] = runtime.loaded();
    if (!options.json)
      printTable(terminal, [['model', name], ['kernels', kernels], ['threads', String(threads)], []]);
    const machine = { model: name, kernels, threads };
    printResult(
      terminal,
      options.json,
      results.map((result) => ({ ...result, ...machine })),
      [
        ['at once', 'tokens/s', 'first token'],
        ...results.map(({ sequences, tokens_per_second, first_token_ms }) => [
          String(sequences),
          tokens_per_second.toFixed(1),
          `${first_token_ms.toFixed(0)} ms`,
        ]),
      ],
    );
    if (options.json) return;
    if (model === undefined) print(terminal, EMBEDDED_NOTE);
    if (options.synthetic)
      print(terminal, `The model: ${model}. Another run finds it there; delete it when you are done`);
  },
});

/** Measures answers. The questions must differ, so that neither caches nor drafts from an equal question speed up an answer. */
async function measure(runtime: Runtime, model: string | undefined, questions: readonly Question[]) {
  const startMs = performance.now();
  let firstMs = 0;
  let tokenCount = 0;
  const answer = async ({ seed, content }: Question) => {
    const stream = await runtime.createCompletion({
      model,
      messages: [{ role: 'user', content }],
      max_completion_tokens: TOKENS,
      ignore_eos: true,
      seed,
      stream: true,
      return_token_ids: true,
      stream_options: { include_usage: true },
    });
    for await (const { choices, usage } of stream) {
      if (choices[0]?.token_ids?.length) firstMs ||= performance.now() - startMs; // a stream opens before its first token
      tokenCount += usage?.completion_tokens ?? 0;
    }
  };
  await Promise.all(questions.map(answer));
  const seconds = (performance.now() - startMs) / 1000;
  return { sequences: questions.length, tokens_per_second: tokenCount / seconds, first_token_ms: firstMs };
}
