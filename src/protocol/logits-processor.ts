/** The contract of a logits processor: a function in a request, which JSON cannot carry. */

/** The row to use instead, or nothing if the row was edited in place. */
// biome-ignore lint/suspicious/noConfusingVoidType: functions without a return statement must fit
export type NextLogits = Float32Array | void;

/**
 * Edits one row of logits in place, or returns the row to use instead. Called once per token of one choice. A function
 * with three parameters also gets the prompt. The row's memory is reused for the next token: copy values that you keep.
 */
export type LogitsProcessor =
  | ((outputIds: Int32Array, logits: Float32Array) => NextLogits)
  | ((promptIds: Int32Array, outputIds: Int32Array, logits: Float32Array) => NextLogits);
