/** A model's file and its options -> what lists of models say of it. Reads headers only. */
import fs from 'node:fs';
import {
  describeOnnx,
  isOnnxModel,
  onnxBytes,
  readHeaders,
  scaledContext,
  toShape,
} from '../backends/index.ts';
import type { ModelOptions } from '../protocol/index.ts';
import { detectReasoning } from '../reasoning/index.ts';
import { detectToolFormat } from '../tool-calls/index.ts';
import { contextSizeOf } from './context-limits.ts';
import { type EmbeddingPlan, planEmbedding, planOnnxEmbedding } from './embedding-model.ts';
import { findProjector } from './model-files.ts';
import type { ServingOptions } from './serving-options.ts';

/** What is known of a model whose files are here, loaded or not. */
export type ModelCard = {
  readonly path: string;
  readonly format: 'gguf' | 'onnx';
  /** Bytes of its files. */
  readonly bytes: number;
  /** When its file changed: milliseconds since 1970. */
  readonly modifiedMs: number;
  /** As llama.cpp names it, for example `qwen3`; empty for ONNX models. */
  readonly architecture: string;
  /** Number of weights; null for ONNX models. */
  readonly parameters: number | null;
  /** Type of most weights, for example `Q4_K`; empty for ONNX models. */
  readonly weightType: string;
  /** Most tokens of prompt and answer together. */
  readonly contextSize: number;
  /** Jinja source; empty if it has none. */
  readonly chatTemplate: string;
  readonly capabilities: readonly ('completion' | 'tools' | 'thinking' | 'vision' | 'embedding' | 'rerank')[];
  /** Numbers and texts of a GGUF header, by key. */
  readonly metadata: Readonly<Record<string, string | number>>;
};

/** Reads one. Fails as loading it does. */
export async function readCard(
  file: string,
  options: ModelOptions,
  serving: ServingOptions,
): Promise<ModelCard> {
  const facts = isOnnxModel(file) ? readOnnx(file, options, serving) : await readGguf(file, options, serving);
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
  /** Null: it answers. */
  readonly vectors: EmbeddingPlan | null;
};

function readOnnx(file: string, options: ModelOptions, serving: ServingOptions): Facts {
  const { contextLength, chatTemplate } = describeOnnx(file);
  return {
    format: 'onnx',
    bytes: onnxBytes(file),
    architecture: '',
    parameters: null,
    weightType: '',
    chatTemplate,
    metadata: {},
    contextLength,
    vectors: planOnnxEmbedding(file, options, serving),
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
