/** Answers to chat completion requests: one response, or a stream of chunks. The OpenAI client's types accept them. */
import type { RoutedExperts } from './generated/request-types.ts';

/** The answer to a request that does not stream. */
export interface ChatCompletion {
  /** `chatcmpl-` and the request's id. */
  id: string;
  object: 'chat.completion';
  /** Seconds since 1970. */
  created: number;
  /** The model as the caller named it. */
  model: string;
  /** One per `n`, by index. */
  choices: ChatCompletionChoice[];
  service_tier: null;
  /** Engine, model and adapter that answered: with the same seed, the same fingerprint gives the same tokens. */
  system_fingerprint: string;
  /** The seed that was drawn because the request had none; null when it had one. */
  seed: number | null;
  usage: Usage;
  /** One entry per prompt token, null for the first; null unless `prompt_logprobs` was given. */
  prompt_logprobs: (PromptLogprobs | null)[] | null;
  /** Null unless `return_token_ids`. */
  prompt_token_ids: number[] | null;
  /** Only with `return_prompt_text`: the prompt as the chat template writes it. */
  prompt_text?: string;
  /** The handle of a prefilled prompt; null unless one was asked for. */
  kv_transfer_params: Record<string, unknown> | null;
  /** Only with `return_timings` or `timings_per_token`. */
  metrics?: CompletionMetrics;
  /** Only with `return_timings` or `timings_per_token`. */
  timings?: CompletionTimings;
  /** Paths of the keywords in the request's schema that are not enforced. Absent if all are. */
  warnings?: string[];
}

/** One answer. */
export interface ChatCompletionChoice {
  index: number;
  message: ResponseMessage;
  /** Null unless `logprobs`. */
  logprobs: ChoiceLogprobs | null;
  finish_reason: FinishReason;
  /** The token id or the text that ended the answer; null for the end-of-sequence token and for `length`. */
  stop_reason: number | string | null;
  /** Every generated token, including the one that ended the answer. Null unless `return_token_ids`. */
  token_ids: number[] | null;
  /** Only with `return_routed_experts`. */
  routed_experts?: RoutedExperts;
  /** Only with `context_shift`. */
  context_shift?: DroppedTokens;
}

/** Tokens of a prompt and its answer that were dropped because the context was full. */
export interface DroppedTokens {
  /** Leading tokens that were kept. */
  kept_tokens: number;
  /** Tokens dropped directly after the kept ones. 0 means that everything fitted. */
  dropped_tokens: number;
}

/** Why an answer ended. */
export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'function_call';

/** The message of an answer. It can be sent back in `messages` unchanged. */
export interface ResponseMessage {
  /** `assistant`, or the role of the last message if `add_generation_prompt` is off. */
  role: 'assistant';
  /** Null if the whole answer is reasoning or tool calls. */
  content: string | null;
  refusal: null;
  /** Always null. The type is `any` because OpenAI's type allows only a list or no value. */
  // biome-ignore lint/suspicious/noExplicitAny: null is not in the OpenAI client's type, and any other type would not be true
  annotations: any;
  audio: null;
  /** The call if the request had `functions`, otherwise null. */
  function_call: ResponseFunctionCall | null;
  /** Empty if the model made no calls, or if the request had `functions`. */
  tool_calls: ResponseToolCall[];
  /** The reasoning, if the model wrote any and `include_reasoning` is on. */
  reasoning: string | null;
  /** The same as `reasoning`. */
  reasoning_content: string | null;
}

/** A call that the model made. */
export type ResponseToolCall = ResponseFunctionToolCall | ResponseCustomToolCall;

/** A call of a function. */
export interface ResponseFunctionToolCall {
  id: string;
  type: 'function';
  function: ResponseFunctionCall;
}

/** A call of a custom tool. */
export interface ResponseCustomToolCall {
  id: string;
  type: 'custom';
  custom: {
    name: string;
    input: string;
  };
}

/** A function's name and the arguments of the call. */
export interface ResponseFunctionCall {
  name: string;
  /** JSON text. */
  arguments: string;
}

/** Log-probabilities of an answer or a chunk: one entry per token. */
export interface ChoiceLogprobs {
  content: TokenLogprob[];
  refusal: null;
}

/** One token and its log-probability. */
export interface Logprob {
  /** The text of this token alone, or `token_id:N`. */
  token: string;
  /** Natural logarithm, at least -9999. */
  logprob: number;
  /** The token's bytes. Concatenated they are the text, even if one character takes several tokens. */
  bytes: number[];
}

/** The token of one position, and the most probable tokens there. */
export interface TokenLogprob extends Logprob {
  /** The `top_logprobs` most probable tokens, best first. */
  top_logprobs: Logprob[];
}

/** Token id as text -> its log-probability at one prompt position: first the prompt's token, then the most probable ones. */
export interface PromptLogprobs {
  [tokenId: string]: {
    /** Natural logarithm, at least -9999. */
    logprob: number;
    /** Rank of the token at its position. 1 is the most probable token. */
    rank: number;
    decoded_token: string;
  };
}

/** Tokens of a request. */
export interface Usage {
  /** Tokens of the prompt, counted once for all choices. */
  prompt_tokens: number;
  total_tokens: number;
  /** Sum over all choices, including end-of-sequence tokens. */
  completion_tokens: number;
  /** Prompt tokens by origin. */
  prompt_tokens_details?: {
    /** Prompt tokens that the prefix cache saved. */
    cached_tokens: number;
    /** Prompt tokens that represent pictures and sounds. Absent if the prompt has none. */
    media_tokens?: number;
  };
  /** Numbers of accepted and rejected draft tokens, from `prediction` and from `speculation`, and of reasoning tokens. */
  completion_tokens_details?: {
    /** Draft tokens that were accepted. */
    accepted_prediction_tokens: number;
    /** Draft tokens that were verified and rejected. They do not count as completion tokens. */
    rejected_prediction_tokens: number;
    /** Tokens of reasoning, without its markers. Absent if the model does not mark reasoning. */
    reasoning_tokens?: number;
  };
}

/** The times of the parts of a request, in milliseconds over all its choices, with the names of vLLM's server. */
export interface CompletionMetrics {
  /** The time from the request to the first step over it. */
  queue_time_ms: number;
  /** The time from that step to the first token. */
  time_to_first_token_ms: number;
  /** The time from the first token to the last one. */
  generation_time_ms: number;
  /** Mean time between two tokens of a choice. */
  mean_itl_ms: number;
  /** Tokens after the first one of each choice, by `generation_time_ms`. */
  tokens_per_second: number;
}

/** The same in the names of llama.cpp's server, with the numbers of tokens. */
export interface CompletionTimings {
  /** Tokens of the prompt that came from the prefix cache. */
  cache_n: number;
  /** Tokens of the prompt that were computed. */
  prompt_n: number;
  /** The time from the first step over the request to its first token. */
  prompt_ms: number;
  prompt_per_token_ms: number;
  prompt_per_second: number;
  /** Tokens of all choices. */
  predicted_n: number;
  /** The time from the first token to the last one. */
  predicted_ms: number;
  predicted_per_token_ms: number;
  /** As `tokens_per_second` of {@link CompletionMetrics}. */
  predicted_per_second: number;
  /** Draft tokens, and those that were accepted. Absent if there were none. */
  draft_n?: number;
  draft_n_accepted?: number;
}

/** The progress of a prompt: how many of its tokens are computed. */
export interface PromptProgress {
  /** Tokens of the prompt. */
  total: number;
  /** Tokens that came from the prefix cache. */
  cache: number;
  /** Tokens that are done, with those of the cache. */
  processed: number;
  /** Milliseconds since the work on the prompt began. */
  time_ms: number;
}

/** One event of a stream. */
export interface ChatCompletionChunk {
  id: string;
  object: 'chat.completion.chunk';
  /** Seconds since 1970. */
  created: number;
  model: string;
  /** Engine, model and adapter that answered. */
  system_fingerprint?: string;
  /** One choice. Empty in the last chunk, which has the usage, and in chunks with `prompt_progress`. */
  choices: ChunkChoice[];
  /** Only with `stream_options`. */
  usage?: Usage;
  /** Only in the last chunk, with `return_timings` or `timings_per_token`. */
  metrics?: CompletionMetrics;
  /** Present in the last chunk with `return_timings`, in every chunk with `timings_per_token`. */
  timings?: CompletionTimings;
  /** Only with `return_progress`, in chunks without choices, before the first token. */
  prompt_progress?: PromptProgress;
  /** Only in the first chunk of each choice: the seed that was drawn because the request had none. */
  seed?: number | null;
  /** Only in the first chunk of each choice: the ids if `return_token_ids` is set, otherwise null. */
  prompt_token_ids?: number[] | null;
  /** Only with `return_prompt_text`, in the first chunk of the stream. */
  prompt_text?: string;
  /** Only in the first chunk of the stream: paths of the keywords in the request's schema that are not enforced. */
  warnings?: string[];
}

/** New content of one choice. */
export interface ChunkChoice {
  index: number;
  delta: ChunkDelta;
  /** Log-probabilities of the new tokens. Null unless `logprobs`. */
  logprobs: ChoiceLogprobs | null;
  /** Set in the last chunk of the choice. */
  finish_reason: FinishReason | null;
  /** Only in the last chunk of the choice. */
  stop_reason?: number | string | null;
  /** Null unless `return_token_ids`. */
  token_ids?: number[] | null;
  /** Only with `return_routed_experts`, in the last chunk of the choice. */
  routed_experts?: RoutedExperts;
  /** Only with `context_shift`, in the last chunk of the choice. */
  context_shift?: DroppedTokens;
}

/** New parts of a message. Concatenated in order they are the message. */
export interface ChunkDelta {
  /** Only in the first chunk of a choice; see {@link ResponseMessage.role}. */
  role?: 'assistant';
  content?: string | null;
  reasoning?: string | null;
  /** The same as `reasoning`. */
  reasoning_content?: string | null;
  tool_calls?: ToolCallDelta[];
  /** New parts of the call if the request had `functions`. */
  function_call?: Partial<ResponseFunctionCall>;
}

/** New parts of one tool call. */
export interface ToolCallDelta {
  index: number;
  /** Only in the first delta of a call. */
  id?: string;
  /**
   * `function` or `custom`, only in the first delta of a call. Its type is open because OpenAI's client names one of the two.
   */
  // biome-ignore lint/suspicious/noExplicitAny: 'custom' is not in the OpenAI client's type
  type?: any;
  function?: {
    /** Only in the first delta of a call. */
    name?: string;
    /** The next piece of the JSON text. */
    arguments?: string;
  };
  custom?: {
    /** Only in the first delta of a call. */
    name?: string;
    /** The next piece of the text. */
    input?: string;
  };
}
