/** What became of a row of logits: the numbers of the addon's `SampleStatus` -> their names. */
export const ROW_STATUS = {
  /** It has a token; or it was scored. */
  SAMPLED: 0,
  /** Masks left no token. */
  NO_TOKEN_ALLOWED: 1,
  /** The logits hold NaN. */
  NOT_NUMBERS: 2,
  /** It is masked and biased, and JavaScript has not edited it. */
  AWAITS_EDIT: 3,
  /** Masks left no token, and its constraint is complete. */
  COMPLETE: 4,
  /** It follows a draft: another token came in its place, or no row was needed here. */
  PASSED_OVER: 5,
} as const;
