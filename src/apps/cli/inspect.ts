/** `onpolicy inspect`: a model file -> its properties, and the memory it would need. */
import { mib } from '../../common/index.ts';
import { inspectModel } from '../../index.ts';
import { command, number, text, toOptions } from './arguments.ts';
import { HUB_FLAGS, hubOf, JSON_FLAG } from './model-arguments.ts';
import { printResult } from './terminal.ts';

/** Prints facts of a GGUF file, without loading it. */
export const inspect = command({
  name: 'inspect',
  words: '<model>',
  about: 'what a file or hf: URI is, and whether it fits into memory; reads headers only',
  options: {
    context: number('tokens of a prompt and its answer'),
    sequences: number('answers at once'),
    'cache-type': text('T', 'f32, f16, q8_0 or q4_0'),
    'sliding-window': text('W', 'window: sliding-window layers cache only the window'),
    ...HUB_FLAGS,
    ...JSON_FLAG,
  },
  async run({ options, names }, terminal) {
    const [file] = names as [string];
    const renamed = { context: 'contextSize', sequences: 'maxSequences' };
    const given = toOptions(options, ['cache-type', 'sliding-window'], renamed);
    const found = await inspectModel(file, { ...given, hub: hubOf(options) });
    const { memory, fit, placement, devices, engine } = found;
    const gpus = devices.filter(({ kind }) => kind === 'gpu');
    printResult(terminal, options.json, found, [
      ['model', found.path],
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
      ['fits', `${FITS[fit.verdict]}: ${mib(fit.freeBytes)} of ${mib(fit.totalBytes)} are free`],
      ...gpus.map(({ name, description, freeBytes }) => [name, `${description}, ${mib(freeBytes)} free`]),
      ['engine', `llama.cpp ${engine?.version ?? 'unknown'}`],
      ...(engine?.off ?? []).map(({ problem, without }): [string, string] => [
        'off',
        `${without}, as ${problem}`,
      ]),
      ['GPU', gpus.length === 0 ? GPU_HINT : `${placement.gpuLayers} of ${placement.layers} layers`],
    ]);
  },
});

const FITS = {
  gpu: 'yes, into the GPU',
  memory: 'yes',
  tight: 'only if other programs free memory',
  no: 'no',
} as const;

const GPU_HINT = 'none; docs/packaging.md#add-a-gpu says how to add one';
