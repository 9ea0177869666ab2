/** `onpolicy rerank`, `score` and `classify`: texts, or the lines of the input -> their scores or labels. */
import { command, number, text } from './arguments.ts';
import { COMMON, MODEL, openRuntime } from './model-arguments.ts';
import { printResult, readAll, type Terminal } from './terminal.ts';

const FLAGS = { model: MODEL, ...COMMON } as const;
const PAIR_FLAGS = { instruction: text('TEXT', 'what makes a text fit'), ...FLAGS } as const;

export const rerank = command({
  name: 'rerank',
  words: '<query> [text...]',
  about: 'texts, or the lines of the input, by how well they fit a query',
  options: { 'top-n': number('how many are printed'), ...PAIR_FLAGS },
  async run({ options, names }, terminal) {
    const [query, ...texts] = names as [string, ...string[]];
    const documents = await textsOr(texts, terminal);
    await using runtime = await openRuntime(options, terminal);
    const { model, instruction, 'top-n': top_n } = options;
    const response = await runtime.rerank({ model, instruction, query, documents, top_n });
    const rows = response.results.map(({ relevance_score, document }) => [
      shown(relevance_score),
      document!.text,
    ]);
    printResult(terminal, options.json, response, rows);
  },
});

export const score = command({
  name: 'score',
  words: '<text> [others...]',
  about: 'how well texts, or the lines of the input, fit one',
  options: PAIR_FLAGS,
  async run({ options, names }, terminal) {
    const [text_1, ...texts] = names as [string, ...string[]];
    const text_2 = await textsOr(texts, terminal);
    await using runtime = await openRuntime(options, terminal);
    const { model, instruction } = options;
    const response = await runtime.score({ model, instruction, text_1, text_2 });
    const rows = response.data.map((pair) => [shown(pair.score), text_2[pair.index]!]);
    printResult(terminal, options.json, response, rows);
  },
});

export const classify = command({
  name: 'classify',
  words: '[text...]',
  about: 'labels of texts, or of the lines of the input',
  options: FLAGS,
  async run({ options, names }, terminal) {
    const input = await textsOr(names, terminal);
    await using runtime = await openRuntime(options, terminal);
    const response = await runtime.classify({ model: options.model, input });
    const rows = response.data.map(({ index, label, probs }) => [
      label,
      shown(Math.max(...probs)),
      input[index]!,
    ]);
    printResult(terminal, options.json, response, rows);
  },
});

/** Returns the words of the command line, or the lines of the input if there are none. */
async function textsOr(words: readonly string[], { input }: Terminal): Promise<readonly string[]> {
  if (words.length > 0) return words;
  return (await readAll(input)).split(/\r?\n/).filter((line) => line.trim() !== '');
}

function shown(value: number): string {
  return value.toFixed(4);
}
