/** What a rule between fields is. */
import type { ErrorDetail } from '../../errors.ts';
import { fault } from '../faults.ts';
import type { ChatCompletionRequest } from '../generated/request-types.ts';

/** What a runtime allows its requests. */
export type ChatRuleOptions = {
  /** Cap of `top_logprobs` and `prompt_logprobs`; null: the vocabulary. */
  readonly maxLogprobs: number | null;
  /** Cap of `n`; null: that of the field. */
  readonly maxChoices: number | null;
  readonly scheduling: 'fcfs' | 'priority';
  /** Whether a request may bring its own chat template. */
  readonly allowRequestTemplate: boolean;
  /** Whether the arguments of earlier calls may be what a model wrote in place of JSON. */
  readonly allowBrokenArguments?: boolean;
};

type Field = keyof ChatCompletionRequest;

/** A request whose listed fields have the right types; other fields may be anything. */
export type ChatRule = {
  readonly name: string;
  /** A rule runs only when none of these fields is faulty by itself. Without the first one it finds nothing. */
  readonly reads: readonly [Field, ...Field[]];
  /** It depends on the options of one runtime: a request that was validated elsewhere is checked for it again. */
  readonly isLimit?: true;
  readonly check: (
    request: ChatCompletionRequest,
    options: ChatRuleOptions,
  ) => ErrorDetail | readonly ErrorDetail[] | null;
};

/** A field that contradicts another one. `expected` ends the sentence "field: expected ...". */
export function conflict(field: string, expected: string, input: unknown): ErrorDetail {
  return fault([field], 'conflict', expected, input);
}

/** The rule that the first of some fields contradicts the others where `holds`. */
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
