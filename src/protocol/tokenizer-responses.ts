/** What requests about prompts and tokens are answered with. */

/** The prompt that a chat completion request would be answered from. */
export interface RenderedPrompt {
  object: 'chat.completion.prompt';
  /** The model as the caller named it. */
  model: string;
  /** The messages as the chat template writes them. */
  prompt: string;
  prompt_token_ids: number[];
  /** All tokens of the prompt, with those of pictures and sounds. */
  count: number;
  /** Tokens of prompt and answer together at most. */
  max_model_len: number;
}

/** The answer of `POST /tokenize`. */
export interface TokenizeResponse {
  count: number;
  /** Tokens of prompt and answer together at most. */
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
