/** The chat completion request after validation: every field is present, valid and normalized. */

import type { FunctionTool, GrammarInputFormat, JsonObject } from './generated/request-types.ts';
import type { LogitsProcessor } from './logits-processor.ts';
import type { Complete } from './validate.ts';

/** Fields whose types differ from those of the request. */
type Normalized = {
  readonly messages: readonly ChatMessage[];
  /** Token id -> bias from -100 to 100. */
  readonly logit_bias: ReadonlyMap<number, number>;
  /** A signed 64-bit integer. Null means that a seed is drawn. */
  readonly seed: bigint | null;
  /** The limit, given as `max_completion_tokens` or `max_tokens`. Null means the rest of the context. */
  readonly max_completion_tokens: number | null;
  /** True if a higher limit than the rest of the context stands for that rest. An option of the call sets it. */
  readonly shortens_answer: boolean;
  readonly stop: readonly string[];
  /** The constraint of `structured_outputs` or of `response_format`; null when nothing is constrained. */
  readonly structured_outputs: ValidStructuredOutputs | null;
  /** Path of the constraint or of its schema in the request, for errors about it. */
  readonly constraint_field:
    | 'structured_outputs'
    | 'response_format.schema'
    | 'response_format.json_schema.schema';
  readonly logits_processors: readonly ValidLogitsProcessor[];
  readonly inference_xargs: Readonly<Record<string, string | number | readonly (string | number)[]>>;
  /** Both false without `stream_options`; the second only with the first. */
  readonly stream_options: { readonly include_usage: boolean; readonly continuous_usage_stats: boolean };
  /** The tools as chat templates read them. A custom tool is a function with one argument. */
  readonly tools: readonly FunctionTool[];
  /** `none` if there are no tools. `name` is the tool that must be called. */
  readonly tool_choice: 'none' | 'auto' | 'required' | { readonly name: string };
  /** Names of the tools that may be called. Null means all. */
  readonly allowed_tools: ReadonlySet<string> | null;
  /** Custom tools by name, with the grammar of their input. Null means any text. */
  readonly custom_tools: ReadonlyMap<string, GrammarInputFormat['grammar'] | null>;
  /** True if the tools were given as `functions`. The answer then has calls in that form. */
  readonly uses_functions: boolean;
  /** Arguments of the template without `chat_template`, which is moved to the field of that name. */
  readonly chat_template_kwargs: JsonObject;
  /** Null means the setting of the runtime. */
  readonly speculation: ValidSpeculation | null;
  /** The text of the prediction. Empty if there is none. */
  readonly prediction: string;
  /** Milliseconds that the model stays loaded after the request; infinite means forever. Null means the setting of the runtime. */
  readonly keep_alive: number | null;
  readonly adapters: readonly ValidAdapter[];
  /** Null means that repetitions do not end an answer. */
  readonly repetition_detection: ValidRepetition | null;
};

type Filled = Complete['ChatCompletionRequest'];

/**
 * A valid request: every field of the schema with its default, normalized. Null means "not given" and occurs only if a
 * later stage knows the default: a value of the model, the size of the context, a new id.
 */
export type ValidChatRequest = Omit<
  Filled,
  keyof Normalized | 'response_format' | 'functions' | 'function_call'
> &
  Normalized;

/** An adapter: exactly one of `model` and `file` is not null. */
export type ValidAdapter = Complete['Adapter'];

/** How tokens are drafted. False means that they are not. */
export type ValidSpeculation = false | 'auto' | Complete['SpeculationSettings'];

/** The condition under which an answer counts as a loop. A pattern has at least one token and is there at least twice. */
export type ValidRepetition = Complete['RepetitionDetection'];

/** A message in the normalized form that templates read. */
export type ChatMessage = {
  readonly role: string;
  /** Empty if the message has no content. */
  readonly content: readonly ChatContentPart[];
  readonly name: string | null;
  /** Null if the message has no calls. */
  readonly tool_calls: readonly ChatToolCall[] | null;
  readonly tool_call_id: string | null;
  readonly reasoning: string | null;
  readonly refusal: string | null;
  /** Tools of a developer message. */
  readonly tools: readonly FunctionTool[] | null;
};

/** A part of the content: text, or media, which only some models accept. */
export type ChatContentPart =
  | { readonly type: 'text'; readonly text: string }
  | {
      readonly type: 'media';
      /** The type of the part, for example `image_url`. */
      readonly kind: string;
      /** The part, unchanged. */
      readonly part: JsonObject;
    };

/** A tool call of an earlier turn. */
export type ChatToolCall = {
  readonly id: string | null;
  readonly type: 'function';
  readonly function: {
    readonly name: string;
    /** JSON text. `{}` if there were no arguments. */
    readonly arguments: string;
  };
};

/** A constraint: exactly one of `json`, `regex`, `choice`, `grammar`, `json_object` and `structural_tag` is not null. */
export type ValidStructuredOutputs = Readonly<
  Omit<Complete['StructuredOutputs'], 'json' | '_backend' | '_backend_was_auto'> & {
    json: string | JsonObject | null;
  }
>;

/** A registered name, a name with arguments for its constructor, or (in process only) a function. */
export type ValidLogitsProcessor =
  | string
  | {
      readonly qualname: string;
      readonly args: readonly unknown[];
      readonly kwargs: Readonly<Record<string, unknown>>;
    }
  | LogitsProcessor;
