/** The contract of a logits processor, the one thing in a request that JSON cannot carry. */

/**
 * Edits one row of logits in place, or returns the row to use instead. Called once per token of one choice. A function
 * with three parameters also gets the prompt.
 */
export type LogitsProcessor =
  | ((outputIds: Int32Array, logits: Float32Array) => Float32Array | void)
  | ((promptIds: Int32Array, outputIds: Int32Array, logits: Float32Array) => Float32Array | void);
