/** Answers to text completion requests: one response, or a stream of chunks. The OpenAI client's types accept them. */
import type {
  CompletionMetrics,
  CompletionTimings,
  DroppedTokens,
  PromptLogprobs,
  PromptProgress,
  Usage,
} from './chat-completion-response.ts';

/** The answer to a request that does not stream. */
export interface TextCompletion {
  /** `cmpl-` and the request's id. */
  id: string;
  object: 'text_completion';
  /** Seconds since 1970. */
  created: number;
  /** The model as the caller named it. */
  model: string;
  /** `n` choices per prompt, in the order of the prompts. */
  choices: TextCompletionChoice[];
  /** Engine, model and adapter that answered. */
  system_fingerprint: string;
  /** The seed that was drawn because the request had none. Null if it had a seed or several prompts. */
  seed: number | null;
  /** Tokens of all prompts and all choices. */
  usage: Usage;
  /** The handle of a prefilled prompt; null unless one was asked for. */
  kv_transfer_params: Record<string, unknown> | null;
  /** Only with `return_timings` or `timings_per_token`. */
  metrics?: CompletionMetrics;
  /** Only with `return_timings` or `timings_per_token`. */
  timings?: CompletionTimings;
  /** Keywords of the request's schema that are not enforced. Absent if all are. */
  warnings?: string[];
}

/** One continuation of one prompt. */
export interface TextCompletionChoice {
  index: number;
  /** The generated text. With `echo` it follows the prompt. */
  text: string;
  /** Null unless `logprobs`. */
  logprobs: TextLogprobs | null;
  finish_reason: 'stop' | 'length';
  /** The token id or the text that ended it; null for the end-of-sequence token and for `length`. */
  stop_reason: number | string | null;
  /** One entry per token of the prompt, null for the first; null unless `prompt_logprobs`. */
  prompt_logprobs: (PromptLogprobs | null)[] | null;
  /** Tokens of the prompt; null unless `return_token_ids`. */
  prompt_token_ids: number[] | null;
  /** Tokens of the text; null unless `return_token_ids`. */
  token_ids: number[] | null;
  /** Only with `context_shift`. */
  context_shift?: DroppedTokens;
}

/** Log-probabilities of the tokens of a text, with `echo` also of the prompt. All lists have the same length. */
export interface TextLogprobs {
  /** Offset of each token in the text of the choice, in characters (code points). */
  text_offset: number[];
  /** Log-probability of each token. Null for the first token of a prompt. The type is `any` because OpenAI's does not allow null. */
  // biome-ignore lint/suspicious/noExplicitAny: null is not in the OpenAI client's type, and any other type would not be true
  token_logprobs: any[];
  tokens: string[];
  /** The most probable tokens at each position, and the actual one. Null for the first token of a prompt. */
  // biome-ignore lint/suspicious/noExplicitAny: null is not in the OpenAI client's type, and any other type would not be true
  top_logprobs: any[];
}

/** A part of a streamed answer. */
export interface TextCompletionChunk {
  /** The id of the answer, the same in all chunks. */
  id: string;
  object: 'text_completion';
  /** Seconds since 1970. */
  created: number;
  model: string;
  /** New content. Empty in the chunk with the usage. */
  choices: TextCompletionChunkChoice[];
  /** In the last chunk with `include_usage`, in every chunk with `continuous_usage_stats`. */
  usage?: Usage;
  /** Only in the last chunk, with `return_timings` or `timings_per_token`. */
  metrics?: CompletionMetrics;
  /** Present in the last chunk with `return_timings`, in every chunk with `timings_per_token`. */
  timings?: CompletionTimings;
  /** Only with `return_progress`, in chunks without choices, before the first token. */
  prompt_progress?: PromptProgress;
}

/** New content of one choice. */
export interface TextCompletionChunkChoice {
  index: number;
  text: string;
  /** Log-probabilities of the new tokens. Null unless `logprobs`. */
  logprobs: TextLogprobs | null;
  /** Set in the last chunk of a choice. The type is `any` because OpenAI's does not allow null. */
  // biome-ignore lint/suspicious/noExplicitAny: null is not in the OpenAI client's type, and any other type would not be true
  finish_reason: any;
  /** Only in the last chunk of a choice: the token id or the text that ended it. */
  stop_reason?: number | string | null;
  /** Tokens of the prompt, in the first chunk of a choice; null unless `return_token_ids`. */
  prompt_token_ids?: number[] | null;
  /** New tokens; null unless `return_token_ids`. */
  token_ids: number[] | null;
  /** Only with `context_shift`, in the last chunk of a choice. */
  context_shift?: DroppedTokens;
}
