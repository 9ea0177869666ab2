/** `onpolicy inspect`: a model file -> what it is, and what it would take. */
import { inspectModel } from '../index.ts';
import { readArguments, toOptions, wrongUsage } from './arguments.ts';
import { printJson, printTable, type Terminal } from './terminal.ts';

const MIB = 2 ** 20;
/** Flag -> option of `inspectModel`. */
const FLAGS = {
  context: 'contextSize',
  sequences: 'maxSequences',
  'cache-type': 'cacheType',
  'sliding-window': 'slidingWindow',
} as const;

/** Prints facts of a GGUF file, without loading it. */
export async function inspect(words: readonly string[], terminal: Terminal): Promise<void> {
  const { options, names } = readArguments(words, {
    json: 'flag',
    context: 'number',
    sequences: 'number',
    'cache-type': 'text',
    'sliding-window': 'text',
  });
  const [file, ...others] = names;
  if (file === undefined || others.length > 0) throw wrongUsage('inspect: expected one file');
  const found = await inspectModel(file, toOptions(options, FLAGS));
  if (options.json) return printJson(terminal, found);
  const { memory, placement, devices } = found;
  const mib = (bytes: number): string => `${Math.ceil(bytes / MIB)} MiB`;
  const gpus = devices.filter(({ kind }) => kind === 'gpu');
  printTable(terminal, [
    ['architecture', found.architecture],
    ['name', found.name],
    ['context', `${found.contextLength} tokens`],
    ['layers', `${found.layers} of width ${found.embeddingSize}`],
    ['vocabulary', `${found.vocabularySize} tokens`],
    ['chat template', found.chatTemplate === '' ? 'none' : `${found.chatTemplate.length} characters`],
    ['weights', mib(memory.weights)],
    ['cache', mib(memory.cache)],
    ['compute', mib(memory.compute)],
    ['checkpoints', mib(memory.checkpoints)],
    ['together', mib(memory.total)],
    ...gpus.map(({ name, description, freeBytes }) => [name, `${description}, ${mib(freeBytes)} free`]),
    ['GPU', gpus.length === 0 ? GPU_HINT : `${placement.gpuLayers} of ${placement.layers} layers`],
  ]);
}

const GPU_HINT = 'none; docs/platforms.md has the line that adds one';
