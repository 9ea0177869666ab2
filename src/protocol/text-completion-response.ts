/** What a text completion request is answered with: one response, or a stream of chunks. Accepted by the OpenAI client's types. */
import type { DroppedTokens, PromptLogprobs, Usage } from './chat-completion-response.ts';

/** The answer to a request that does not stream. */
export interface TextCompletion {
  /** `cmpl-` and the request's id. */
  id: string;
  object: 'text_completion';
  /** Seconds since 1970. */
  created: number;
  /** The model as the caller named it. */
  model: string;
  /** `n` for each prompt, in the order of the prompts. */
  choices: TextCompletionChoice[];
  /** Engine, model and adapter that answered. */
  system_fingerprint: string;
  /** The seed that was drawn because the request had none; null when it had one, or several prompts. */
  seed: number | null;
  /** Tokens of all prompts and all choices. */
  usage: Usage;
  /** The handle of a prefilled prompt; null unless one was asked for. */
  kv_transfer_params: Record<string, unknown> | null;
  /** Keywords of the request's schema that the answer is not held to. Absent when there are none. */
  warnings?: string[];
}

/** One continuation of one prompt. */
export interface TextCompletionChoice {
  index: number;
  /** The text; with `echo` behind the prompt. */
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

/** Log-probabilities of the tokens of a text, with `echo` also of the prompt. All lists are of one length. */
export interface TextLogprobs {
  /** Where each token begins in the text of the choice, in characters (code points). */
  text_offset: number[];
  /** Of each token; null for the first one of a prompt. Its type is open because OpenAI's has no null here. */
  // biome-ignore lint/suspicious/noExplicitAny: null is not in the OpenAI client's type, and any other type would not be true
  token_logprobs: any[];
  tokens: string[];
  /** The best tokens at each place and the one that stands there; null for the first one of a prompt. */
  // biome-ignore lint/suspicious/noExplicitAny: null is not in the OpenAI client's type, and any other type would not be true
  top_logprobs: any[];
}

/** A part of a streamed answer. */
export interface TextCompletionChunk {
  /** That of the whole answer. */
  id: string;
  object: 'text_completion';
  /** Seconds since 1970. */
  created: number;
  model: string;
  /** What is new; empty in the chunk with the usage. */
  choices: TextCompletionChunkChoice[];
  /** In the last chunk with `include_usage`, in every chunk with `continuous_usage_stats`. */
  usage?: Usage;
}

/** What is new of one choice. */
export interface TextCompletionChunkChoice {
  index: number;
  text: string;
  /** Of the new tokens; null unless `logprobs`. */
  logprobs: TextLogprobs | null;
  /** Set in its last chunk. Its type is open because OpenAI's has no null here. */
  // biome-ignore lint/suspicious/noExplicitAny: null is not in the OpenAI client's type, and any other type would not be true
  finish_reason: any;
  /** Of its last chunk: the token id or the text that ended it. */
  stop_reason?: number | string | null;
  /** Tokens of the prompt, in the first chunk of a choice; null unless `return_token_ids`. */
  prompt_token_ids?: number[] | null;
  /** New tokens; null unless `return_token_ids`. */
  token_ids: number[] | null;
  /** Only with `context_shift`, in the last chunk of a choice. */
  context_shift?: DroppedTokens;
}
