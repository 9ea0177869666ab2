/** The inputs and outputs of a graph -> a description of its inputs, or an error if it is not supported. */
import type { InferenceSession } from 'onnxruntime-node';
import type { OnpolicyError } from '../errors.ts';
import { type FreshGraph, GROUPED } from './graph/index.ts';
import type { CacheTensor, Decoder, DecoderSizes, Padding } from './messages.ts';
import { unsupported } from './model-errors.ts';

type Metadata = readonly InferenceSession.ValueMetadata[];
type TensorMetadata = InferenceSession.TensorValueMetadata;

const KNOWN = new Set([
  'input_ids',
  'inputs_embeds',
  'attention_mask',
  'position_ids',
  'num_logits_to_keep',
  'use_cache_branch',
]);

/**
 * Reads a graph. Fails with `UNSUPPORTED` unless it is a text decoder with a cache.
 * @param changed layout of the changed outputs with keys and values of new tokens only; null if the outputs have those of all tokens
 */
export function describeDecoder(
  { inputs, outputs }: { readonly inputs: Metadata; readonly outputs: Metadata },
  operators: ReadonlySet<string>,
  sizes: DecoderSizes,
  changed: FreshGraph | null,
): Decoder {
  const given = new Map(inputs.map((input) => [input.name, input]));
  const made = new Map(outputs.map((output) => [output.name, output]));
  const logits = made.get('logits');
  const embeddings = given.get('inputs_embeds');
  if (!(given.has('input_ids') || embeddings) || !logits?.isTensor)
    throw refused(
      `it takes ${[...given.keys()].join(', ')} and gives ${[...made.keys()].join(', ')}: ` +
        'a decoder of text takes input_ids or inputs_embeds and gives logits',
    );
  if (embeddings?.isTensor && embeddings.type !== 'float32')
    throw refused(`inputs_embeds is of type ${embeddings.type}; float32 can be computed with`);
  const cache: CacheTensor[] = [];
  let cacheType: string | undefined;
  for (const input of inputs) {
    if (KNOWN.has(input.name)) continue;
    if (!input.isTensor || !/^past_key_values\.\d+\.(key|value)$/.test(input.name))
      throw refused(`its input ${input.name} is not one of a decoder of text with keys and values`);
    if (cacheType !== undefined && input.type !== cacheType)
      throw refused('keys and values are of different types');
    cacheType = input.type;
    cache.push(toCacheTensor(input, made, sizes, changed));
  }
  if (cache.length === 0) throw refused('it was exported without a cache of keys and values');
  const isGrouped = operators.has(GROUPED);
  const takesPositions = given.has('position_ids');
  const takesMask = given.has('attention_mask');
  const padding: Padding = isGrouped || changed ? 'right' : takesPositions && takesMask ? 'left' : 'none';
  return {
    cache,
    cacheType: toFloatType(cacheType!, 'past_key_values'),
    logitsType: toFloatType(logits.type, 'logits'),
    vocabSize: sizeOf(logits, logits.shape.length - 1, sizes.vocabSize),
    padding,
    takesMask,
    takesPositions,
    takesKept: given.has('num_logits_to_keep'),
    hasBranch: given.has('use_cache_branch'),
    fresh: changed?.layout ?? null,
    isGrouped,
    takesEmbeddings: !given.has('input_ids'),
  };
}

function toCacheTensor(
  input: TensorMetadata,
  made: ReadonlyMap<string, unknown>,
  sizes: DecoderSizes,
  changed: FreshGraph | null,
): CacheTensor {
  const name = input.name.replace('past_key_values', 'present');
  const present = changed?.freshOf.get(name) ?? name;
  if (!made.has(present)) throw refused(`it has no output ${present}`);
  if (input.shape.length !== 4)
    throw refused(
      `${input.name} has ${input.shape.length} dimensions instead of batch, heads, tokens and size`,
    );
  return {
    past: input.name,
    present,
    heads: sizeOf(input, 1, sizes.heads),
    size: sizeOf(input, 3, sizes.headSize),
  };
}

function sizeOf({ name, shape }: TensorMetadata, axis: number, fallback: number): number {
  const size = shape[axis];
  if (typeof size === 'number') return size;
  if (Number.isInteger(fallback) && fallback > 0) return fallback;
  throw refused(`the size of axis ${axis} of ${name} stands neither in the graph nor in config.json`);
}

function toFloatType(type: string, name: string): 'float32' | 'float16' {
  if (type === 'float32' || type === 'float16') return type;
  throw refused(`${name} is of type ${type}; float32 and float16 can be computed with`);
}

function refused(reason: string): OnpolicyError {
  return unsupported(`this ONNX graph cannot generate text here: ${reason}`);
}
