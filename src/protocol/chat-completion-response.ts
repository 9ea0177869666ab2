/** What a chat completion request is answered with: one response, or a stream of chunks. Accepted by the OpenAI client's types. */
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
  /** The handle of a prefilled prompt; null unless one was asked for. */
  kv_transfer_params: Record<string, unknown> | null;
  /** Keywords of the request's schema that the answer is not held to, each by its path. Absent when there are none. */
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
  /** Every generated token, the one that ended it included. Null unless `return_token_ids`. */
  token_ids: number[] | null;
  /** Only with `return_routed_experts`. */
  routed_experts?: RoutedExperts;
  /** Only with `context_shift`. */
  context_shift?: DroppedTokens;
}

/** What was dropped of a prompt and its answer because the context was full: the tokens after those that were kept. */
export interface DroppedTokens {
  /** Leading tokens that stayed. */
  kept_tokens: number;
  /** Tokens behind them that were dropped; 0: all had room. */
  dropped_tokens: number;
}

/** Why an answer ended. */
export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'function_call';

/** The message of an answer. It can be given back in `messages` as it is. */
export interface ResponseMessage {
  /** `assistant`; with `add_generation_prompt` off the role of the last message, whatever it is. */
  role: 'assistant';
  /** Null when the whole answer is reasoning or tool calls. */
  content: string | null;
  refusal: null;
  /** Always null. Its type is open because OpenAI's has a list or nothing here. */
  // biome-ignore lint/suspicious/noExplicitAny: null is not in the OpenAI client's type, and any other type would not be true
  annotations: any;
  audio: null;
  /** The call, when the request had `functions`; else null. */
  function_call: ResponseFunctionCall | null;
  /** Empty when there are none, and when the request had `functions`. */
  tool_calls: ResponseToolCall[];
  /** The thoughts, when the model wrote any and `include_reasoning` is on. */
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

/** A function's name, and what it is called with. */
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
  /** Its text alone, or `token_id:N`. */
  token: string;
  /** Natural logarithm, at least -9999. */
  logprob: number;
  /** The token's true bytes: joined, they are the text, also where one character needs several tokens. */
  bytes: number[];
}

/** The token of one position, and the best ones there. */
export interface TokenLogprob extends Logprob {
  /** As many as `top_logprobs` asked for, best first. */
  top_logprobs: Logprob[];
}

/** Token id as text -> its log-probability at one prompt position: the prompt's own token first, then the best ones. */
export interface PromptLogprobs {
  [tokenId: string]: {
    /** Natural logarithm, at least -9999. */
    logprob: number;
    /** 1 is the best token of the position. */
    rank: number;
    decoded_token: string;
  };
}

/** Tokens of a request. */
export interface Usage {
  /** Tokens of the prompt, counted once. */
  prompt_tokens: number;
  total_tokens: number;
  /** Summed over choices, ends of sequences included. */
  completion_tokens: number;
  /** Where prompt tokens came from. */
  prompt_tokens_details?: {
    /** Prompt tokens that the prefix cache saved. */
    cached_tokens: number;
    /** Prompt tokens that stand for pictures and sounds; absent without them. */
    media_tokens?: number;
  };
  /** What became of drafted tokens: those of `prediction`, and those that `speculation` found. */
  completion_tokens_details?: {
    /** Draft tokens that were accepted. */
    accepted_prediction_tokens: number;
    /** Drafts that were checked, and were not. They are no completion tokens. */
    rejected_prediction_tokens: number;
    /** Tokens of reasoning, without its markers. Absent where the model marks none. */
    reasoning_tokens?: number;
  };
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
  /** One choice; none in the chunk that ends with the usage. */
  choices: ChunkChoice[];
  /** Only with `stream_options`. */
  usage?: Usage;
  /** Only in the first chunk of each choice: the seed that was drawn because the request had none. */
  seed?: number | null;
  /** Only in the first chunk of each choice: the ids with `return_token_ids`, else null. */
  prompt_token_ids?: number[] | null;
  /** Only in the first chunk of all: keywords of the request's schema that the answer is not held to, each by its path. */
  warnings?: string[];
}

/** What is new in one choice. */
export interface ChunkChoice {
  index: number;
  delta: ChunkDelta;
  /** Of the new tokens; null unless `logprobs`. */
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

/** New parts of a message. Joined in order, they are the message. */
export interface ChunkDelta {
  /** Only in the first chunk of a choice; see {@link ResponseMessage.role}. */
  role?: 'assistant';
  content?: string | null;
  reasoning?: string | null;
  /** The same as `reasoning`. */
  reasoning_content?: string | null;
  tool_calls?: ToolCallDelta[];
  /** New parts of the call, when the request had `functions`. */
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
