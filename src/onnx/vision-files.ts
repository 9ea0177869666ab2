/** A model folder -> the graphs for vision beside its decoder, or null if it reads text only. */
import fs from 'node:fs';
import path from 'node:path';
import { invalid, unsupported } from './model-errors.ts';

/** Files for vision in a model's folder. */
export type VisionFiles = {
  /** Graph from pictures to rows of embeddings. */
  readonly encoder: string;
  /** Graph from ids to rows of embeddings. */
  readonly embeddings: string;
  /** The token that marks the positions of a picture's rows. */
  readonly imageTokenId: number;
};

type Json = Readonly<Record<string, unknown>>;

/** Processors that turn a picture into runs of one token, one run for each tile. */
const PROCESSORS = ['LlavaProcessor', 'Idefics3Processor', 'SmolVLMProcessor'];
/** Endings of graph names by the type of their weights, in order of preference if the caller names none. */
export const WEIGHT_ENDINGS = ['', '_fp16', '_quantized', '_int8', '_uint8', '_q4', '_q4f16', '_bnb4'];

/**
 * Finds the graphs beside the decoder's `graph`, preferably with the same type of weights. Fails with `MODEL_INVALID` if one is missing,
 * and with `UNSUPPORTED` for models with another kind of vision or with audio.
 */
export function readVision(
  folder: string,
  graph: string,
  { config, processor }: { readonly config: Json; readonly processor: Json },
): VisionFiles | null {
  const place = path.dirname(graph);
  const names = fs.existsSync(place) ? fs.readdirSync(place).filter((name) => name.endsWith('.onnx')) : [];
  const isThere = (stem: string): boolean => names.some((name) => name.startsWith(stem));
  if (!isThere('vision_encoder') && !isThere('embed_tokens')) return null;
  const architecture = architectureOf(config);
  if (isThere('audio_encoder'))
    throw unsupported(`${architecture} has audio input, which ONNX models cannot have here`);
  const kind = processor['processor_class'];
  if (typeof kind !== 'string' || !PROCESSORS.includes(kind))
    throw unsupported(
      `${architecture} sees through ${typeof kind === 'string' ? kind : 'no known processor'}; ` +
        `ONNX models with these processors are served (processor_class of preprocessor_config.json): ${PROCESSORS.join(', ')}`,
    );
  const imageTokenId = config['image_token_id'] ?? config['image_token_index'];
  if (!Number.isInteger(imageTokenId))
    throw invalid(`${path.join(folder, 'config.json')} has no image_token_id or image_token_index`);
  const ending = WEIGHT_ENDINGS.find((end) => end !== '' && graph.endsWith(`${end}.onnx`)) ?? '';
  const find = (stem: string): string => {
    for (const end of [ending, ...WEIGHT_ENDINGS])
      if (names.includes(`${stem}${end}.onnx`)) return path.join(place, `${stem}${end}.onnx`);
    throw invalid(
      `${place} holds no ${stem}*.onnx: expected one of ${WEIGHT_ENDINGS.map((end) => `${stem}${end}.onnx`).join(', ')}`,
    );
  };
  return {
    encoder: find('vision_encoder'),
    embeddings: find('embed_tokens'),
    imageTokenId: imageTokenId as number,
  };
}

/** Returns the name of a configuration's architecture. */
export function architectureOf(config: Json): string {
  return String([config['architectures']].flat()[0] ?? config['model_type'] ?? 'unknown');
}
