/** Answers to requests about prompts and tokens. */

/** The prompt of a chat completion request. */
export interface RenderedPrompt {
  object: 'chat.completion.prompt';
  /** The model as the caller named it. */
  model: string;
  /** The messages rendered by the chat template. */
  prompt: string;
  prompt_token_ids: number[];
  /** Only with `return_token_offsets`: the characters of `prompt` that each token spells, `[start, end)`. */
  token_offsets?: [number, number][] | null;
  /** Only with `return_assistant_tokens_mask`: 1 for the tokens of an assistant's text. */
  assistant_tokens_mask?: number[] | null;
  /** Number of tokens of the prompt, including those of pictures and sounds. */
  count: number;
  /** Maximum number of tokens of prompt and answer together. */
  max_model_len: number;
}

/** The answer of `POST /tokenize`. */
export interface TokenizeResponse {
  count: number;
  /** Maximum number of tokens of prompt and answer together. */
  max_model_len: number;
  /** Ids of the vocabulary. */
  tokens: readonly number[];
  /** Their texts; null unless `return_token_strs`. */
  token_strs: string[] | null;
}

/** The answer of `POST /detokenize`. */
export interface DetokenizeResponse {
  prompt: string;
}
