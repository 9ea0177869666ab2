/** The chat completion request after the door: every field present, every value legal, one form for each thing. */

import type {
  ChatCompletionRequest,
  FunctionTool,
  GrammarInputFormat,
  JsonObject,
  ReasoningBudget,
} from './generated/request-types.ts';
import type { LogitsProcessor } from './logits-processor.ts';
import type { LlamaSampler } from './schemas/llama-samplers.ts';

/**
 * A valid request. Null stands for "not given" only where a later stage knows the default: the model's own, the context's
 * size, a new id.
 */
export type ValidChatRequest = {
  readonly messages: readonly ChatMessage[];
  /** Null: the default model. */
  readonly model: string | null;
  readonly frequency_penalty: number;
  readonly presence_penalty: number;
  /** Null: the model's own, else 1. */
  readonly repetition_penalty: number | null;
  /** Token id -> bias from -100 to 100. */
  readonly logit_bias: ReadonlyMap<number, number>;
  /** Null: the model's own, else 1. 0 is greedy. */
  readonly temperature: number | null;
  /** Null: the model's own, else 1. */
  readonly top_p: number | null;
  /** Null: the model's own, else 0. 0 is off. */
  readonly top_k: number | null;
  /** Null: the model's own, else 0. */
  readonly min_p: number | null;
  /** 1: off. */
  readonly typical_p: number;
  /** 0: off. */
  readonly xtc_probability: number;
  readonly xtc_threshold: number;
  /** 0: off. */
  readonly dry_multiplier: number;
  readonly dry_base: number;
  readonly dry_allowed_length: number;
  /** -1: all tokens. */
  readonly dry_penalty_last_n: number;
  readonly dry_sequence_breakers: readonly string[];
  /** 0: off. */
  readonly dynatemp_range: number;
  readonly dynatemp_exponent: number;
  /** 0: off. */
  readonly mirostat: number;
  readonly mirostat_tau: number;
  readonly mirostat_eta: number;
  /** A signed 64-bit integer. Null: draw one. */
  readonly seed: bigint | null;
  readonly n: number;
  readonly use_beam_search: boolean;
  readonly length_penalty: number;
  readonly max_tokens: number | null;
  /** What was asked for under either name. Null: what is left of the context. */
  readonly max_completion_tokens: number | null;
  readonly min_tokens: number;
  readonly stop: readonly string[];
  readonly stop_token_ids: readonly number[];
  readonly include_stop_str_in_output: boolean;
  readonly ignore_eos: boolean;
  readonly allowed_token_ids: readonly number[] | null;
  readonly bad_words: readonly string[];
  /** The constraint of `structured_outputs` or of `response_format`; null when nothing is constrained. */
  readonly structured_outputs: ValidStructuredOutputs | null;
  /** The field that the constraint came from, for errors about it. */
  readonly constraint_field: 'structured_outputs' | 'response_format';
  readonly logits_processors: readonly ValidLogitsProcessor[];
  readonly inference_xargs: Readonly<Record<string, string | number | readonly (string | number)[]>>;
  readonly logprobs: boolean;
  /** 0 without `logprobs`; -1 is the whole vocabulary. */
  readonly top_logprobs: number;
  /** -1 is the whole vocabulary. Null with `stream`: chunks have no place for them. */
  readonly prompt_logprobs: number | null;
  readonly return_tokens_as_token_ids: boolean;
  readonly return_token_ids: boolean;
  readonly stream: boolean;
  /** Both false without `stream_options`; the second only with the first. */
  readonly stream_options: { readonly include_usage: boolean; readonly continuous_usage_stats: boolean };
  readonly skip_special_tokens: boolean;
  readonly spaces_between_special_tokens: boolean;
  readonly include_reasoning: boolean;
  readonly echo: boolean;
  /** Null: a new one. */
  readonly request_id: string | null;
  readonly user: string | null;
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
  readonly parallel_tool_calls: boolean;
  readonly reasoning_effort: 'none' | 'minimal' | 'low' | 'medium' | 'high' | null;
  readonly reasoning: ReasoningBudget | null;
  /** What either name asks for. Null: no limit. */
  readonly thinking_token_budget: number | null;
  /** Never true together with `continue_final_message`. */
  readonly add_generation_prompt: boolean;
  readonly continue_final_message: boolean;
  readonly add_special_tokens: boolean;
  readonly documents: readonly unknown[] | null;
  /** The request's own template, from here or from `chat_template_kwargs`. */
  readonly chat_template: string | null;
  /** Without `chat_template`. */
  readonly chat_template_kwargs: JsonObject;
  /** -1: as many as the context holds beside the answer. */
  readonly truncate_prompt_tokens: number | null;
  readonly context_shift: boolean;
  /** Null: what the answer finds to be the system's. */
  readonly n_keep: number | null;
  readonly mm_processor_kwargs: JsonObject | null;
  readonly priority: number;
  /** Null: the runtime's own. */
  readonly speculation: ValidSpeculation | null;
  /** The text of the prediction; empty: there is none. */
  readonly prediction: string;
  readonly cache_salt: string | null;
  /** Null: no limit. */
  readonly timeout_ms: number | null;
  /** Milliseconds that the model stays after the request, infinite for good. Null: as the runtime says. */
  readonly keep_alive: number | null;
  readonly adapters: readonly ValidAdapter[];
  readonly kv_transfer_params: JsonObject | null;
};

/** An adapter: exactly one of the first two is not null. */
export type ValidAdapter = {
  readonly model: string | null;
  readonly file: string | null;
  readonly scale: number;
};

/** Samplers of llama.cpp, by its names. */
export type ValidLlamaSamplers = Pick<ValidChatRequest, LlamaSampler>;

/** Whether and how tokens are drafted. */
export type ValidSpeculation =
  | false
  | 'auto'
  | {
      readonly method: 'ngram' | 'suffix' | 'draft';
      readonly maxTokens: number;
      readonly minMatch: number;
      /** With `draft`, the model that drafts; else null. */
      readonly model: string | null;
    };

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

/** A constraint. Exactly one of the first six fields is not null. */
export type ValidStructuredOutputs = {
  /** JSON text is kept as text: its key order counts. */
  readonly json: string | JsonObject | null;
  readonly regex: string | null;
  readonly choice: readonly string[] | null;
  readonly grammar: string | null;
  readonly json_object: true | null;
  readonly structural_tag: string | null;
  readonly disable_fallback: boolean;
  readonly disable_any_whitespace: boolean;
  readonly disable_additional_properties: boolean;
  readonly whitespace_pattern: string | null;
  readonly property_order: 'declared' | 'any' | null;
  readonly schemas: Readonly<Record<string, JsonObject | boolean>> | null;
};

/** A registered name, one that is built with arguments, or in process a function. */
export type ValidLogitsProcessor =
  | string
  | {
      readonly qualname: string;
      readonly args: readonly unknown[];
      readonly kwargs: Readonly<Record<string, unknown>>;
    }
  | LogitsProcessor;

// Fields that are folded into others: a field of the request that is in neither list does not compile.
type Folded = 'response_format' | 'functions' | 'function_call';
type Ignored =
  | 'audio'
  | 'metadata'
  | 'modalities'
  | 'moderation'
  | 'prompt_cache_key'
  | 'prompt_cache_options'
  | 'prompt_cache_retention'
  | 'safety_identifier'
  | 'service_tier'
  | 'store'
  | 'verbosity'
  | 'web_search_options';
type Missing = Exclude<keyof ChatCompletionRequest, keyof ValidChatRequest | Folded | Ignored>;
true satisfies [Missing] extends [never] ? true : Missing;
