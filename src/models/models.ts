/** A runtime's options -> its models, in parts that callers take by themselves. */
import type { ModelOptions } from '../protocol/index.ts';
import { Admission } from './admission.ts';
import { ModelCards } from './model-card.ts';
import type { FormatOptions } from './model-format.ts';
import { ModelMemory } from './model-memory.ts';
import { type NamedModels, namedModels } from './named-models.ts';

export type Models = {
  /** Settings that references stand for. */
  readonly names: NamedModels;
  /** Models that are loaded and unloaded. */
  readonly memory: ModelMemory;
  /** Counts of requests, which limit the queue of a model. */
  readonly admission: Admission;
  /** Facts of models, loaded or not. */
  readonly cards: ModelCards;
};

/** Loads nothing. Close `memory` to free the models. */
export function openModels(
  options: FormatOptions,
  defaultModel: string | ModelOptions | null,
  aliases: Record<string, string | ModelOptions>,
): Models {
  const names = namedModels(defaultModel, aliases);
  return {
    names,
    memory: new ModelMemory(names, options),
    admission: new Admission(names, options),
    cards: new ModelCards(names, options),
  };
}
