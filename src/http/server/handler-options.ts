/** What a caller gives to `createHandler` -> checked options with their defaults filled in. */

import type { EngineStats } from '../../engine/index.ts';
import type { AdaptersResource, ModelCard, ResidentModel } from '../../models/index.ts';
import {
  type Complete,
  checkArguments,
  type HandlerOptions,
  type SftRequest,
  withDefaults,
} from '../../protocol/index.ts';
import type { CallOptions, Completions, Service, TrainingJob } from '../../service.ts';

/** What a handler can serve: a whole service, or one that only answers completions. Everything else is `UNSUPPORTED` then. */
export type Servable = Completions &
  Partial<Service> & {
    /** Supervised training. */
    sft?(request: SftRequest, options?: CallOptions): Promise<TrainingJob>;
    /** The HTML page of a model's training run. */
    report?(modelId: string, options?: { readonly compare?: string | null }): Promise<string>;
    /** Names of models that requests can use, the default one first. */
    servedModels?(): readonly string[];
    /** Whether a reference is such a name, a model file that exists, or the URI of one. */
    hasModel?(reference: string): boolean;
    /** The token ids of a text. */
    tokenize?(
      text: string,
      options?: { model?: string; addSpecialTokens?: boolean; parseSpecial?: boolean },
    ): Promise<readonly number[]>;
    /** The text of token ids. */
    detokenize?(ids: readonly number[], options?: { model?: string }): Promise<string>;
    /** Limit on the tokens of a model's prompt and answer together. */
    contextSize?(model?: string | null): Promise<number>;
    /** What is known of a model, loaded or not; null: its files are not here. */
    modelCard?(model?: string | null): Promise<ModelCard | null>;
    /** Loads nothing: finds the files of a model, or downloads them. */
    download?(model: string, options?: CallOptions): Promise<string>;
    /** Unloads a model as soon as no request uses it. */
    unload?(model: string): Promise<boolean>;
    /** Named LoRA adapters. */
    readonly adapters?: AdaptersResource;
    /** Models that are in memory, being loaded, or waiting for memory. */
    loaded?(): readonly ResidentModel[];
    /** Whether requests may bring back arguments of calls that are no JSON. */
    readonly allowBrokenArguments?: boolean;
    /** The home folder, where files and batches are kept. */
    readonly home?: string;
    /** Statistics for `GET /metrics`. */
    stats?(): EngineStats;
  };

/** Options of a handler with all defaults. */
export type HandlerSettings = Omit<Complete['HandlerOptions'], 'tokens'> & {
  readonly tokens: readonly Complete['Token'][];
};

/** Fills defaults in. Throws `INVALID_REQUEST` for an unknown option or a wrong value. */
export function checkHandlerOptions(options: HandlerOptions): HandlerSettings {
  return withTokens(withDefaults('HandlerOptions', checkArguments('HandlerOptions', options)));
}

export function withTokens(settings: Complete['HandlerOptions']): HandlerSettings {
  const tokens = settings.tokens.map((entry) =>
    withDefaults('Token', typeof entry === 'string' ? { token: entry } : entry),
  );
  return { ...settings, tokens };
}
