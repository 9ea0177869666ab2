/** What requests for embeddings are answered with. Accepted by the OpenAI client's types. */

/** The vectors of some texts. */
export interface EmbeddingResponse {
  object: 'list';
  /** One for each text, in order. */
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
   * Numbers. With `encoding_format: 'base64'` it is a text of their 32-bit floats, little-endian: the type leaves that out, as
   * OpenAI's own does.
   */
  embedding: number[];
}

/** Tokens of a request. */
export interface EmbeddingUsage {
  /** Of all texts. */
  prompt_tokens: number;
  /** The same. */
  total_tokens: number;
}
