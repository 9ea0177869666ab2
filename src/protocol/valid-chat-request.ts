/** The chat completion request after the validation: every field present, every value legal, one form for each thing. */

import type { FunctionTool, GrammarInputFormat, JsonObject } from './generated/request-types.ts';
import type { LogitsProcessor } from './logits-processor.ts';
import type { Complete } from './validate.ts';

/** Fields whose form differs from that of the request. */
type Normalized = {
  readonly messages: readonly ChatMessage[];
  /** Token id -> bias from -100 to 100. */
  readonly logit_bias: ReadonlyMap<number, number>;
  /** A signed 64-bit integer. Null: draw one. */
  readonly seed: bigint | null;
  /** What was asked for under either name. Null: what is left of the context. */
  readonly max_completion_tokens: number | null;
  readonly stop: readonly string[];
  /** The constraint of `structured_outputs` or of `response_format`; null when nothing is constrained. */
  readonly structured_outputs: ValidStructuredOutputs | null;
  /** Where the constraint came from, or its schema, for errors about it. */
  readonly constraint_field:
    | 'structured_outputs'
    | 'response_format.schema'
    | 'response_format.json_schema.schema';
  readonly logits_processors: readonly ValidLogitsProcessor[];
  readonly inference_xargs: Readonly<Record<string, string | number | readonly (string | number)[]>>;
  /** Both false without `stream_options`; the second only with the first. */
  readonly stream_options: { readonly include_usage: boolean; readonly continuous_usage_stats: boolean };
  /** As chat templates read them: a custom tool is a function with one argument. */
  readonly tools: readonly FunctionTool[];
  /** `none` whenever there are no tools; `name`: the one that must be called. */
  readonly tool_choice: 'none' | 'auto' | 'required' | { readonly name: string };
  /** Names of the tools that may be called; null: all. */
  readonly allowed_tools: ReadonlySet<string> | null;
  /** Custom tools by name, with the grammar of their input; null: any text. */
  readonly custom_tools: ReadonlyMap<string, GrammarInputFormat['grammar'] | null>;
  /** The tools came as `functions`, and the answer calls them in that form. */
  readonly uses_functions: boolean;
  /** Without `chat_template`, which is the field of that name. */
  readonly chat_template_kwargs: JsonObject;
  /** Null: the runtime's own. */
  readonly speculation: ValidSpeculation | null;
  /** The text of the prediction; empty: there is none. */
  readonly prediction: string;
  /** Milliseconds that the model stays after the request, infinite for good. Null: as the runtime says. */
  readonly keep_alive: number | null;
  readonly adapters: readonly ValidAdapter[];
};

type Filled = Complete['ChatCompletionRequest'];

/**
 * A valid request: every field of the schema with its default, one form for each thing. Null stands for "not given" only
 * where a later stage knows the default: the model's own, the context's size, a new id.
 */
export type ValidChatRequest = Omit<
  Filled,
  keyof Normalized | 'response_format' | 'functions' | 'function_call'
> &
  Normalized;

/** An adapter: exactly one of `model` and `file` is not null. */
export type ValidAdapter = Complete['Adapter'];

/** Whether and how tokens are drafted. */
export type ValidSpeculation = false | 'auto' | Complete['SpeculationSettings'];

/** A message in the one form that templates are fed from. */
export type ChatMessage = {
  readonly role: string;
  /** Empty when the message has no content. */
  readonly content: readonly ChatContentPart[];
  readonly name: string | null;
  /** Null where the role has none, or none were made. */
  readonly tool_calls: readonly ChatToolCall[] | null;
  readonly tool_call_id: string | null;
  readonly reasoning: string | null;
  readonly refusal: string | null;
  /** Tools of a developer message. */
  readonly tools: readonly FunctionTool[] | null;
};

/** A piece of content: text, or media that only some models take. */
export type ChatContentPart =
  | { readonly type: 'text'; readonly text: string }
  | {
      readonly type: 'media';
      /** The part's own type, for example `image_url`. */
      readonly kind: string;
      /** The part as it was given. */
      readonly part: JsonObject;
    };

/** A tool call of an earlier turn. */
export type ChatToolCall = {
  readonly id: string | null;
  readonly type: 'function';
  readonly function: {
    readonly name: string;
    /** JSON text, `{}` when there were none. */
    readonly arguments: string;
  };
};

/** A constraint: exactly one of `json`, `regex`, `choice`, `grammar`, `json_object` and `structural_tag` is not null. */
export type ValidStructuredOutputs = Readonly<
  Omit<Complete['StructuredOutputs'], '_backend' | '_backend_was_auto'>
>;

/** A registered name, one that is built with arguments, or in process a function. */
export type ValidLogitsProcessor =
  | string
  | {
      readonly qualname: string;
      readonly args: readonly unknown[];
      readonly kwargs: Readonly<Record<string, unknown>>;
    }
  | LogitsProcessor;
