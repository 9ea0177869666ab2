/** A model's file and its options -> the card for lists of models. Reads headers only. */
import fs from 'node:fs';
import type { ModelOptions } from '../protocol/index.ts';
import type { ModelCard } from '../protocol/service/index.ts';
import { detectReasoning } from '../template/reasoning/index.ts';
import { detectToolFormat } from '../template/tool-calls/index.ts';
import { contextSizeOf } from './context-limits.ts';
import { type EmbeddingPlan, planEmbedding, planFormatEmbedding } from './embedding-model.ts';
import { readHeaders, scaledContext, toShape } from './formats/index.ts';
import { findProjector } from './model-files.ts';
import { formatOf, type ModelFormat } from './model-format.ts';
import type { ServingOptions } from './serving-options.ts';

/** Reads a card. Fails as loading the model does. */
export async function readCard(
  file: string,
  options: ModelOptions,
  serving: ServingOptions,
): Promise<ModelCard> {
  const format = formatOf(file, serving.formats);
  const facts = format ? readFormat(format, file, options, serving) : await readGguf(file, options, serving);
  const { chatTemplate, vectors, contextLength, ...card } = facts;
  const projector = await findProjector(file, options, serving, new AbortController().signal).catch(
    () => null,
  );
  return {
    ...card,
    path: file,
    modifiedMs: fs.statSync(file).mtimeMs,
    contextSize: vectors?.contextSize ?? contextSizeOf(options, serving, contextLength),
    chatTemplate,
    capabilities: vectors
      ? [vectors.hasHead ? 'rerank' : 'embedding']
      : [
          'completion',
          ...(detectToolFormat(chatTemplate) === 'none' ? [] : (['tools'] as const)),
          ...(detectReasoning(chatTemplate) ? (['thinking'] as const) : []),
          ...(projector === null ? [] : (['vision'] as const)),
        ],
  };
}

type Facts = Omit<ModelCard, 'path' | 'modifiedMs' | 'contextSize' | 'capabilities'> & {
  readonly contextLength: number;
  /** Null if the model answers. */
  readonly vectors: EmbeddingPlan | null;
};

function readFormat(
  format: ModelFormat,
  file: string,
  options: ModelOptions,
  serving: ServingOptions,
): Facts {
  const { bytes, contextLength, chatTemplate } = format.describe(file);
  return {
    format: format.name,
    bytes,
    architecture: '',
    parameters: null,
    weightType: '',
    chatTemplate,
    metadata: {},
    contextLength,
    vectors: planFormatEmbedding(format, file, options, serving),
  };
}

async function readGguf(file: string, options: ModelOptions, serving: ServingOptions): Promise<Facts> {
  const parts = await readHeaders(file);
  const [header] = parts;
  const shape = toShape(parts);
  const tensors = parts.flatMap((part) => [...part.tensors.values()]);
  const bytesOf = new Map<string, number>();
  for (const { type, bytes } of tensors) bytesOf.set(type.name, (bytesOf.get(type.name) ?? 0) + bytes);
  const [main] = [...bytesOf].sort(([, a], [, b]) => b - a);
  return {
    format: 'gguf',
    bytes: parts.reduce((sum, part) => sum + fs.statSync(part.file).size, 0),
    architecture: header!.architecture,
    parameters: tensors.reduce((sum, { shape: sizes }) => sum + sizes.reduce((a, b) => a * b, 1), 0),
    weightType: main?.[0].toUpperCase() ?? '',
    chatTemplate: header!.text('tokenizer.chat_template') ?? '',
    metadata: header!.scalars,
    contextLength: scaledContext(shape.contextLength, options.rope ?? null),
    vectors: planEmbedding(shape, options, serving),
  };
}
