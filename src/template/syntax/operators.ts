/** An operator -> its precedence. */

export const PRECEDENCE_OR = 1;
export const PRECEDENCE_NOT = 3;
export const PRECEDENCE_COMPARE = 4;
export const PRECEDENCE_CONCAT = 6;
/** Precedences. `**` is left-associative as well. */
export const PRECEDENCES: Readonly<Record<string, number>> = {
  or: PRECEDENCE_OR,
  and: 2,
  in: PRECEDENCE_COMPARE,
  '==': PRECEDENCE_COMPARE,
  '!=': PRECEDENCE_COMPARE,
  '<': PRECEDENCE_COMPARE,
  '<=': PRECEDENCE_COMPARE,
  '>': PRECEDENCE_COMPARE,
  '>=': PRECEDENCE_COMPARE,
  '+': 5,
  '-': 5,
  '~': PRECEDENCE_CONCAT,
  '*': 7,
  '/': 7,
  '//': 7,
  '%': 7,
  '**': 8,
};
