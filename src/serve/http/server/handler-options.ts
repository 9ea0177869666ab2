/** Options of `createHandler` -> checked options with their defaults filled in. */

import {
  type Complete,
  checkArguments,
  type HandlerOptions,
  type SftRequest,
  type ValidationOptions,
  withDefaults,
} from '../../../protocol/index.ts';
import type {
  AdaptersResource,
  CallOptions,
  Completions,
  EngineStats,
  ModelCard,
  ResidentModel,
  Service,
  TrainingJob,
} from '../../../protocol/service/index.ts';

/** A service that a handler can serve: a whole one, or one that only answers completions. Methods that it lacks fail with `UNSUPPORTED`. */
export type Servable = Completions &
  Partial<Service> & {
    /** Starts a supervised training job. */
    sft?(request: SftRequest, options?: CallOptions): Promise<TrainingJob>;
    /** Returns the HTML page of a model's training run. */
    report?(modelId: string, options?: { readonly compare?: string | null }): Promise<string>;
    /** Returns the names of models that requests can use, the default one first. */
    servedModels?(): readonly string[];
    /** Returns true if a reference is one of these names, the path of an existing model file, or the URI of a model. */
    hasModel?(reference: string): boolean;
    /**
     * Returns true if a reference is the id or name of a registered model, or one of its checkpoints. If present, tokens without `admin`
     * can use no other models.
     */
    isRegistered?(reference: string): Promise<boolean>;
    /** Returns the token ids of a text. */
    tokenize?(
      text: string,
      options?: { model?: string; addSpecialTokens?: boolean; parseSpecial?: boolean },
    ): Promise<readonly number[]>;
    /** Returns the text of token ids. */
    detokenize?(ids: readonly number[], options?: { model?: string }): Promise<string>;
    /** Returns the most tokens that a model's prompt and answer may have together. */
    contextSize?(model?: string | null): Promise<number>;
    /** Returns the facts about a model, loaded or not. Null if its files are not on this machine. */
    modelCard?(model?: string | null): Promise<ModelCard | null>;
    /** Returns the path of a model's files, which are downloaded if they are missing. Does not load the model. */
    download?(model: string, options?: CallOptions): Promise<string>;
    /** Unloads a model as soon as no request uses it. */
    unload?(model: string): Promise<boolean>;
    /** Named LoRA adapters. */
    readonly adapters?: AdaptersResource;
    /** Returns the models that are in memory, being loaded, or waiting for memory. */
    loaded?(): readonly ResidentModel[];
    /** Path of the home folder, which has the files and batches. */
    readonly home?: string;
    /** Returns statistics for `GET /metrics`. */
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

/** Returns the options of the check of bodies, also of rows of batches. `onIgnored` receives the paths of unknown fields. */
export function validationOf(
  { unknownFields }: Pick<HandlerSettings, 'unknownFields'>,
  onIgnored: (path: string) => void,
): ValidationOptions {
  return unknownFields === 'refuse'
    ? { wire: true, refuseUnknown: true }
    : { wire: true, dropUnknown: true, onDropped: onIgnored };
}
