/** Results of sampling a row of logits: the numbers of the addon's `RowStatus` -> their names. */
export const ROW_STATUS = {
  /** The row has a token, or was scored. */
  SAMPLED: 0,
  /** Masks left no token. */
  NO_TOKEN_ALLOWED: 1,
  /** The logits contain NaN. */
  NOT_NUMBERS: 2,
  /** The row is masked and biased, and JavaScript has yet to edit it. */
  AWAITS_EDIT: 3,
  /** Masks left no token, and its constraint is complete. */
  COMPLETE: 4,
  /** The row follows a draft token that was not drawn, or is not needed. */
  PASSED_OVER: 5,
} as const;
