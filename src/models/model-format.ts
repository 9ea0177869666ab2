/** A model file -> its model, through the contract of a model format. The runtime passes the formats in, so that the core names none. */
import { errorAt } from '../errors.ts';
import type { ModelOptions } from '../protocol/index.ts';
import type { ModelCard } from '../protocol/service/index.ts';
import type { EmbeddingModel, EmbeddingPlan } from './embedding-model.ts';
import type { LoadedModel } from './formats/index.ts';
import type { FindOptions, Progress } from './hub/index.ts';
import type { MemoryNeed } from './memory-need.ts';
import type { Placement } from './placement.ts';
import type { ServingOptions } from './serving-options.ts';

/** Serving options, and the formats of model files. The first format that owns a file reads it. */
export type FormatOptions = ServingOptions & { readonly formats: readonly ModelFormat[] };

/** Options for downloading a model. */
export type FetchOptions = FindOptions & { readonly onProgress: (progress: Progress) => void };

/** Facts of a model's files for its card. */
export type FormatFacts = Omit<ModelCard, 'path' | 'modifiedMs' | 'contextSize' | 'capabilities'> & {
  readonly contextLength: number;
  /** Null if the model answers. */
  readonly vectors: EmbeddingPlan | null;
};

/** A model to plan the load of. */
export type PlanRequest = {
  readonly file: string;
  readonly options: ModelOptions;
  /** Path of the projector. Null if the model has none. */
  readonly mmproj: string | null;
  readonly serving: ServingOptions;
};

/** Receivers of a load's progress, and the signal that stops it. */
export type LoadControl = {
  readonly signal: AbortSignal;
  readonly onProgress: (fraction: number) => void;
};

/** A load that is decided but not begun. */
export type FormatPlan = {
  readonly placement: Placement;
  readonly need: MemoryNeed;
  /** Null if the model answers. */
  readonly embedding: EmbeddingPlan | null;
  /** Loads the weights and the tokenizer of a model that answers. */
  load(control: LoadControl): Promise<LoadedModel>;
  /** Loads a model of embeddings or scores. `name`: its name in answers. */
  loadVectors(name: string, control: LoadControl): Promise<EmbeddingModel>;
  /**
   * Returns a plan with half as many layers on GPUs. Returns null if the options fix the number, or if no layer is on a GPU. Absent if the
   * format does not place single layers.
   */
  withFewerLayers?(): FormatPlan | null;
};

/** A format of model files. `describe` and `plan` fail with `MODEL_INVALID` or `UNSUPPORTED` for files that they cannot read. */
export type ModelFormat = {
  /** Name of the format in model cards. */
  readonly name: ModelCard['format'];
  /** True if a model may have a projector file, which encodes pictures and sounds. */
  readonly hasProjectors: boolean;
  /** Returns true if a path is a model of this format. */
  owns(file: string): boolean;
  /** Downloads the model of an `hf:` reference and returns its path. Returns null if the reference is not of this format. */
  fetch(reference: string, options: FetchOptions): Promise<string> | null;
  /** Reads the facts of a model that answers or embeds. */
  describe(file: string, options: ModelOptions, serving: ServingOptions): Promise<FormatFacts>;
  /** Plans the load of a model. Reads headers only. */
  plan(request: PlanRequest): Promise<FormatPlan>;
};

/** Returns the format that owns a file. Fails with `UNSUPPORTED` if none does. */
export function formatOf(file: string, formats: readonly ModelFormat[], field = 'model'): ModelFormat {
  const found = formats.find((format) => format.owns(file));
  if (!found) throw errorAt(field, 'UNSUPPORTED', `${file}: no model format reads this file`);
  return found;
}
