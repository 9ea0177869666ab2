/** Answers to embedding requests. The OpenAI client's types accept them. */

/** The vectors of some texts. */
export interface EmbeddingResponse {
  object: 'list';
  /** One embedding per text, in order. */
  data: Embedding[];
  /** The model as the caller named it. */
  model: string;
  usage: EmbeddingUsage;
}

/** The vector of one text. */
export interface Embedding {
  object: 'embedding';
  index: number;
  /**
   * Numbers. With `encoding_format: 'base64'` it is Base64 text of their 32-bit floats, little-endian. Like OpenAI's type,
   * this type omits the text.
   */
  embedding: number[];
}

/** Tokens of a request. */
export interface EmbeddingUsage {
  /** Tokens of all texts. */
  prompt_tokens: number;
  /** Equal to `prompt_tokens`. */
  total_tokens: number;
}
