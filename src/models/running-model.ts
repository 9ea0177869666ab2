/** A model that is loaded, with its engine, templates and adapters; what only GGUF models can do. */
import { type GgufModel, isGguf, type LoadedModel } from '../backends/index.ts';
import type { DiskCache } from '../disk-cache/index.ts';
import type { Engine } from '../engine/index.ts';
import { errorAt } from '../errors.ts';
import type { MediaModel } from '../media/index.ts';
import type { SamplingDefaults } from '../sampling/index.ts';
import type { Tokenizer } from '../tokenizer/index.ts';
import type { Adapters } from './adapters.ts';
import type { ModelTemplate } from './model-template.ts';
import type { Placement } from './placement.ts';

/** A model that answers. */
export type RunningModel = {
  readonly path: string;
  /** What answers call it when the request names none: a reference that finds it again. */
  readonly name: string;
  /** Where its layers and its cache lie. */
  readonly placement: Placement;
  readonly loaded: LoadedModel;
  readonly tokenizer: Tokenizer;
  readonly engine: Engine;
  /** Null: caches of its prompts are not kept on the disk. */
  readonly diskCache: DiskCache | null;
  /** What it sees and hears with; null: it takes text only. */
  readonly media: MediaModel | null;
  /** Loaded beside its weights. */
  readonly adapters: Adapters;
  /** Null if the file has none. */
  readonly template: ModelTemplate | null;
  /** The variant for requests with tools; null: there is only one template. */
  readonly toolTemplate: ModelTemplate | null;
  readonly contextSize: number;
  /** CPU threads that its arithmetic uses. */
  readonly threads: number;
  readonly defaults: SamplingDefaults;
  /** Names engine and model in answers. */
  readonly fingerprint: string;
};

/** What only GGUF models can do needs one. Fails with `UNSUPPORTED` for others, naming the field that asked for it. */
export function requireGguf(model: RunningModel, field: string): GgufModel {
  if (isGguf(model.loaded)) return model.loaded;
  throw errorAt(
    field,
    'UNSUPPORTED',
    `${model.path} is an ONNX model, which can answer but not be trained: its graph holds no gradients. ` +
      "Train the same model as a GGUF file: llama.cpp's convert_hf_to_gguf.py makes one from its Hugging Face checkpoint",
  );
}
