/** A loaded file -> a model with its engine, templates and adapters, and a check for operations that need a GGUF model. */

import type { Engine } from '../engine/index.ts';
import type { Tokenizer } from '../engine/tokenizer/index.ts';
import { errorAt } from '../errors.ts';
import type { SamplingDefaults } from '../sampling/index.ts';
import type { ModelTemplate } from '../template/chat-format/index.ts';
import type { Adapters } from './adapters.ts';
import { type GgufModel, isGguf, type LoadedModel } from './formats/index.ts';
import type { MediaModel } from './media/index.ts';
import type { Placement } from './placement.ts';
import type { DiskCache } from './prompt-files/index.ts';

/** A model that answers. */
export type RunningModel = {
  readonly path: string;
  /** Name in answers to requests that name no model: a reference that finds it again. */
  readonly name: string;
  /** Devices of its layers and its cache. */
  readonly placement: Placement;
  readonly loaded: LoadedModel;
  readonly tokenizer: Tokenizer;
  readonly engine: Engine;
  /** Null if caches of its prompts are not kept on the disk. */
  readonly diskCache: DiskCache | null;
  /** Decoder of pictures and sounds. Null if the model takes text only. */
  readonly media: MediaModel | null;
  /** Adapters loaded beside its weights. */
  readonly adapters: Adapters;
  /** Null if the file has none. */
  readonly template: ModelTemplate | null;
  /** The variant for requests with tools. Null if there is only one template. */
  readonly toolTemplate: ModelTemplate | null;
  readonly contextSize: number;
  /** CPU threads that its computation uses. */
  readonly threads: number;
  readonly defaults: SamplingDefaults;
  /** Identifies engine and model in answers. */
  readonly fingerprint: string;
};

/** Returns the GGUF model. Fails with `UNSUPPORTED` for others, naming the field that requires it. */
export function requireGguf(model: RunningModel, field: string): GgufModel {
  if (isGguf(model.loaded)) return model.loaded;
  throw errorAt(
    field,
    'UNSUPPORTED',
    `${model.path} is an ONNX model, which can answer but not be trained: its graph holds no gradients. ` +
      "Train the same model as a GGUF file: llama.cpp's convert_hf_to_gguf.py makes one from its Hugging Face checkpoint",
  );
}
