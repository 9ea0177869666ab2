/** `onpolicy rerank`, `score` and `classify`: texts, or the lines of the input -> their scores or labels. */
import { readArguments, wrongUsage } from './arguments.ts';
import { COMMON, openRuntime } from './model-arguments.ts';
import { printJson, printTable, readAll, type Terminal } from './terminal.ts';

const FLAGS = { ...COMMON, model: 'text' } as const;
const PAIR_FLAGS = { ...FLAGS, instruction: 'text' } as const;

/** Orders texts by how well they fit a query. */
export async function rerank(words: readonly string[], terminal: Terminal): Promise<void> {
  const { options, names } = readArguments(words, { ...PAIR_FLAGS, 'top-n': 'number' });
  const [query, ...texts] = names;
  if (query === undefined) throw wrongUsage('rerank: expected a query, got nothing');
  const documents = await textsOr(texts, terminal);
  await using runtime = await openRuntime(options, terminal);
  const { model, instruction, 'top-n': top_n } = options;
  const response = await runtime.rerank({ model, instruction, query, documents, top_n });
  if (options.json) printJson(terminal, response);
  else
    printTable(
      terminal,
      response.results.map(({ relevance_score, document }) => [shown(relevance_score), document!.text]),
    );
}

/** Compares a text with others. */
export async function score(words: readonly string[], terminal: Terminal): Promise<void> {
  const { options, names } = readArguments(words, PAIR_FLAGS);
  const [text_1, ...texts] = names;
  if (text_1 === undefined) throw wrongUsage('score: expected a text, got nothing');
  const text_2 = await textsOr(texts, terminal);
  await using runtime = await openRuntime(options, terminal);
  const { model, instruction } = options;
  const response = await runtime.score({ model, instruction, text_1, text_2 });
  if (options.json) printJson(terminal, response);
  else
    printTable(
      terminal,
      response.data.map((pair) => [shown(pair.score), text_2[pair.index]!]),
    );
}

/** Labels texts. */
export async function classify(words: readonly string[], terminal: Terminal): Promise<void> {
  const { options, names } = readArguments(words, FLAGS);
  const input = await textsOr(names, terminal);
  await using runtime = await openRuntime(options, terminal);
  const response = await runtime.classify({ model: options.model, input });
  if (options.json) printJson(terminal, response);
  else
    printTable(
      terminal,
      response.data.map(({ index, label, probs }) => [label, shown(Math.max(...probs)), input[index]!]),
    );
}

/** The words of the command line, or the lines of the input. */
async function textsOr(words: readonly string[], { input }: Terminal): Promise<readonly string[]> {
  if (words.length > 0) return words;
  return (await readAll(input)).split(/\r?\n/).filter((line) => line.trim() !== '');
}

function shown(value: number): string {
  return value.toFixed(4);
}
