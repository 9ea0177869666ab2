/** The type of a rule between fields, and helpers that build rules. */
import type { ErrorDetail } from '../../errors.ts';
import { fault } from '../faults.ts';
import type { ChatCompletionRequest } from '../generated/request-types.ts';

/** Limits of a runtime on its requests. */
export type ChatRuleOptions = {
  /** Maximum of `top_logprobs` and `prompt_logprobs`. Null means the size of the vocabulary. */
  readonly maxLogprobs: number | null;
  /** Maximum of `n`. Null means the maximum of the schema. */
  readonly maxChoices: number | null;
  readonly scheduling: 'fcfs' | 'priority';
  /** True if a request may have its own chat template. */
  readonly allowRequestTemplate: boolean;
};

type Field = keyof ChatCompletionRequest;

/** A check of fields against each other. Only the fields in `reads` have been checked; others may have any type. */
export type ChatRule = {
  readonly name: string;
  /** A rule runs only if none of these fields has a fault. It finds nothing if the first of them is absent. */
  readonly reads: readonly [Field, ...Field[]];
  /** True if the rule depends on the options of a runtime. A request that was validated elsewhere is then checked again. */
  readonly isLimit?: true;
  readonly check: (
    request: ChatCompletionRequest,
    options: ChatRuleOptions,
  ) => ErrorDetail | readonly ErrorDetail[] | null;
};

/** Returns false for null, undefined, false and an empty list, which count as absent. */
export function isGiven(value: unknown): boolean {
  return value != null && value !== false && !(Array.isArray(value) && value.length === 0);
}

/** Returns the fault of a field that contradicts another one. `expected` ends the sentence "field: expected ...". */
export function conflict(field: string, expected: string, input: unknown): ErrorDetail {
  return fault([field], 'conflict', expected, input);
}

/** Returns a rule: if `holds`, the first of the fields contradicts the others. */
export function contradiction(
  name: string,
  reads: ChatRule['reads'],
  expected: string,
  holds: (request: ChatCompletionRequest) => boolean,
): ChatRule {
  const [field] = reads;
  return {
    name,
    reads,
    check: (request) => (holds(request) ? fault([field], 'conflict', expected, request[field]) : null),
  };
}
