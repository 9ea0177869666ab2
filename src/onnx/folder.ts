/** A model folder -> its files and their settings. One error names everything that is missing or damaged. */

import fs from 'node:fs';
import path from 'node:path';
import { isObject } from '../common/index.ts';
import { errorAt } from '../errors.ts';
import type { LoadedModel } from '../models/formats/index.ts';
import type { VectorPooling } from '../models/index.ts';
import type { DecoderSizes } from './messages.ts';
import { invalid, unsupported } from './model-errors.ts';
import { architectureOf, readVision, type VisionFiles, WEIGHT_ENDINGS } from './vision-files.ts';
import { type TokenizerFile, toTokenizerFile } from './vocabulary.ts';

/** Contents of a model folder. */
export type ModelFolder = {
  readonly folder: string;
  /** Path of the graph. */
  readonly file: string;
  /** Files that contain the model: the graph, and its weights if they are in separate files. */
  readonly weightFiles: readonly string[];
  readonly name: string;
  readonly contextLength: number;
  /** Pooling in sentence-transformers' configuration. Null if the folder has none. */
  readonly pooling: VectorPooling | null;
  /** Size of a state; 0 if unknown. */
  readonly width: number;
  readonly sizes: DecoderSizes;
  readonly eosIds: readonly number[];
  readonly chatTemplate: string;
  readonly toolTemplate: string;
  /** Sampling defaults of `generation_config.json`. */
  readonly defaults: LoadedModel['defaults'];
  readonly tokenizer: TokenizerFile;
  readonly tokenizerConfig: Json;
  /** Graphs for vision. Null if the model reads text only. */
  readonly vision: VisionFiles | null;
};

type Json = Readonly<Record<string, unknown>>;

/** Names of graphs in order of preference, used if the caller names none. */
const GRAPHS = WEIGHT_ENDINGS.flatMap((ending) =>
  ['model', 'decoder_model_merged'].map((name) => `${name}${ending}.onnx`),
);
const DEFAULT_CONTEXT = 2048;
/** Keys of `1_Pooling/config.json`. */
const POOLINGS: Readonly<Record<string, VectorPooling>> = {
  pooling_mode_mean_tokens: 'mean',
  pooling_mode_cls_token: 'cls',
  pooling_mode_lasttoken: 'last',
};
/** Names for the length of the context in configurations. */
const CONTEXT_FIELDS = [
  'max_position_embeddings',
  'n_positions',
  'max_sequence_length',
  'seq_length',
  'n_ctx',
];

/**
 * Returns true if a path is an ONNX model, that is a graph or any folder. GGUF models are files, so errors about a folder are those of
 * ONNX.
 */
export function isOnnxModel(file: string): boolean {
  return file.endsWith('.onnx') || fs.statSync(file, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Reads a folder, or the folder of a graph. Fails with `MODEL_INVALID`, or `UNSUPPORTED` for models that do not generate text. */
export function readFolder(reference: string): ModelFolder {
  const isGraph = reference.endsWith('.onnx');
  const beside = path.dirname(reference);
  const folder = !isGraph ? reference : path.basename(beside) === 'onnx' ? path.dirname(beside) : beside;
  if (fs.existsSync(path.join(folder, 'model_index.json')))
    throw unsupported(`${folder} holds a diffusion pipeline, which does not generate text`);
  const config = readJson(folder, 'config.json');
  const text = isObject(config['text_config']) ? config['text_config'] : config;
  if (config['is_encoder_decoder'] === true)
    throw unsupported(`${architectureOf(config)} is an encoder with a decoder; decoders alone can be served`);
  const file = isGraph ? reference : findGraph(folder);
  const processor = readOptional(folder, 'preprocessor_config.json');
  const vision = readVision(folder, file, { config, processor });
  const files = [file, ...(vision ? [vision.encoder, vision.embeddings] : [])];
  const generation = readOptional(folder, 'generation_config.json');
  const tokenizer = readJson(folder, 'tokenizer.json', 'the tokenizer');
  const tokenizerConfig = readJson(folder, 'tokenizer_config.json', 'the tokenizer');
  const heads = number(text, 'num_attention_heads', 'n_head');
  const context = CONTEXT_FIELDS.map((name) => number(text, name)).find((value) => value > 0);
  const eos = generation['eos_token_id'] ?? text['eos_token_id'] ?? config['eos_token_id'] ?? [];
  return {
    folder,
    file,
    weightFiles: files.flatMap((graph) => [graph, ...dataFiles(graph)]),
    name: path.basename(folder),
    contextLength: (context ?? DEFAULT_CONTEXT) - positionOffset(text),
    pooling: readPooling(folder),
    width: number(text, 'hidden_size', 'n_embd'),
    sizes: {
      architecture: String(text['model_type'] ?? ''),
      queryHeads: heads,
      heads: number(text, 'num_key_value_heads') || heads,
      headSize: number(text, 'head_dim') || number(text, 'hidden_size', 'n_embd') / heads,
      vocabSize: number(text, 'vocab_size'),
      hasWindow: hasWindow(text),
    },
    eosIds: [eos].flat().filter((id): id is number => Number.isInteger(id)),
    ...readTemplates(folder, tokenizerConfig),
    defaults: readDefaults(generation),
    tokenizer: toTokenizerFile(tokenizer, (reason) => {
      throw invalid(`${path.join(folder, 'tokenizer.json')}: ${reason}`);
    }),
    tokenizerConfig,
    vision,
  };
}

/** Returns the offset of positions: RoBERTa counts them from the id of its padding. */
function positionOffset(config: Json): number {
  const isRoberta = String(config['model_type'] ?? '').includes('roberta');
  return isRoberta ? number(config, 'pad_token_id') + 1 : 0;
}

/** Fails with `UNSUPPORTED` for poolings other than {@link VectorPooling}. */
function readPooling(folder: string): VectorPooling | null {
  const config = readOptional(folder, '1_Pooling/config.json');
  const wanted = Object.keys(config).filter((key) => key.startsWith('pooling_mode_') && config[key] === true);
  if (wanted.length === 0) return null;
  const [pooling, ...others] = wanted.map((key) => POOLINGS[key]);
  if (pooling && others.length === 0) return pooling;
  throw unsupported(
    `${folder} pools by ${wanted.join(' and ')}: one of ${Object.keys(POOLINGS).join(', ')} can be computed`,
  );
}

/** Returns true if some layers have a sliding window. Many configurations contain window settings that are not used. */
function hasWindow(config: Json): boolean {
  const layers = [config['layer_types'] ?? []].flat();
  if (layers.length > 0) return layers.some((type) => type !== 'full_attention');
  if (config['attention_chunk_size']) return true;
  return Boolean(config['sliding_window']) && config['use_sliding_window'] !== false;
}

function findGraph(folder: string): string {
  for (const name of GRAPHS)
    for (const place of ['onnx', '']) {
      const file = path.join(folder, place, name);
      if (fs.existsSync(file)) return file;
    }
  throw invalid(`${folder} holds no onnx/model*.onnx: expected one of ${GRAPHS.join(', ')}`);
}

/** Returns the weight files: `model.onnx_data`, `model.onnx_data_1` and so on, or `model.onnx.data`. */
function dataFiles(file: string): string[] {
  const [folder, name] = [path.dirname(file), path.basename(file)];
  if (!fs.existsSync(file)) throw errorAt('model', 'MODEL_NOT_FOUND', `there is no file ${file}`);
  return fs
    .readdirSync(folder)
    .filter((other) => other.startsWith(`${name}_data`) || other === `${name}.data`)
    .sort()
    .map((other) => path.join(folder, other));
}

/** Reads the chat templates: one, or a list of named ones. Newer folders have them in separate files. */
function readTemplates(folder: string, config: Json): { chatTemplate: string; toolTemplate: string } {
  const file = path.join(folder, 'chat_template.jinja');
  if (fs.existsSync(file)) return { chatTemplate: fs.readFileSync(file, 'utf8'), toolTemplate: '' };
  const given = config['chat_template'] ?? readOptional(folder, 'chat_template.json')['chat_template'];
  if (!Array.isArray(given))
    return { chatTemplate: typeof given === 'string' ? given : '', toolTemplate: '' };
  const named = (name: string): string => {
    const found = given.find((one: unknown) => isObject(one) && one['name'] === name) as Json | undefined;
    return typeof found?.['template'] === 'string' ? found['template'] : '';
  };
  return { chatTemplate: named('default'), toolTemplate: named('tool_use') };
}

function readDefaults(generation: Json): LoadedModel['defaults'] {
  const read = (name: string): number | null => {
    const value = generation[name];
    return typeof value === 'number' ? value : null;
  };
  const isGreedy = generation['do_sample'] === false;
  return {
    temperature: isGreedy ? null : read('temperature'),
    top_p: isGreedy ? null : read('top_p'),
    top_k: isGreedy ? null : read('top_k'),
    min_p: isGreedy ? null : read('min_p'),
    repetition_penalty: read('repetition_penalty'),
  };
}

function readOptional(folder: string, name: string): Json {
  return fs.existsSync(path.join(folder, name)) ? readJson(folder, name) : {};
}

function readJson(folder: string, name: string, what = 'the model'): Json {
  const file = path.join(folder, name);
  if (!fs.existsSync(file)) throw invalid(`${folder} holds no ${name}, which describes ${what}`);
  let value: unknown;
  try {
    value = JSON.parse(fs.readFileSync(file, 'utf8'));
  } catch (cause) {
    throw invalid(`${file} is damaged: it is not JSON`, cause);
  }
  if (!isObject(value)) throw invalid(`${file} is damaged: expected an object`);
  return value;
}

function number(config: Json, ...names: string[]): number {
  for (const name of names) {
    const value = config[name];
    if (typeof value === 'number') return value;
  }
  return 0;
}
