/** Answers of decisions, in OpenAI's shape with more fields. */
import type {
  DecisionChoice,
  DecisionPredicate,
  DecisionQuestion,
  DecisionRequest,
} from './generated/request-types.ts';

/** Fields that the answers to all kinds of questions share. */
export type AnsweredQuestion = {
  /** The name of the question. Null if it has no name. */
  readonly name: string | null;
  /**
   * The probability that the model gives to the labels of the options together, at temperature 1. Near 1, the model wanted to answer the
   * question; below 0.5, the prompt or the model is wrong for it.
   */
  readonly label_mass: number;
  /** The divisor of the logarithms: the temperature of the request, else the one that was fitted for the model, else 1. */
  readonly temperature: number;
  /** The share of the probability that is spread evenly over the options. Only if one was fitted for the model, and the request has no temperature. */
  readonly noise?: number;
  /** The tokens of the question's first prompt. Only with `return_token_ids`. */
  readonly prompt_token_ids?: readonly number[];
  /**
   * Tokens that count for each option: of yes and no, of the choices, or of the levels. With `read: 'text'`, the tokens of its text in their
   * order. Only with `return_token_ids`, and absent for labels of several tokens.
   */
  readonly label_token_ids?: readonly (readonly number[])[];
};

/** The answer to a predicate. */
export type PredicateAnswer = AnsweredQuestion & {
  readonly type: 'predicate';
  /** Probability that the statement is true. */
  readonly probability: number;
};

/** The answer to a choice. `Value`: the type of its values. */
export type ChoiceAnswer<Value extends string | boolean = string | boolean> = AnsweredQuestion & {
  readonly type: 'choice';
  /** The most probable value. If several are equally probable, the first of them. */
  readonly choice: Value;
  /** (p - 1/n) / (1 - 1/n) of the largest of n probabilities: 0 if all are equal, 1 if one is certain. */
  readonly confidence: number;
  /** The probabilities in the order of the choices. */
  readonly probabilities: readonly { readonly value: Value; readonly probability: number }[];
};

/** The answer to a score. */
export type ScoreAnswer = AnsweredQuestion & {
  readonly type: 'score';
  /** The mean of the level's number, from 0 to n - 1. */
  readonly score: number;
  /** 1 - E|level - mode| / U, at least 0, where U is the mean distance of n equally probable levels from their middle. */
  readonly confidence: number;
  /** The probabilities in the order of the levels. `value` is the level's number. */
  readonly probabilities: readonly {
    readonly value: number;
    readonly label: string;
    readonly probability: number;
  }[];
};

/** The answer to a question of any type. */
export type DecisionAnswer = PredicateAnswer | ChoiceAnswer | ScoreAnswer;

/** The answer to a question of a type. */
export type DecisionAnswerOf<Question extends DecisionQuestion> = Question extends DecisionPredicate
  ? PredicateAnswer
  : Question extends DecisionChoice
    ? ChoiceAnswer<Question['choices'][number]['value']>
    : ScoreAnswer;

/** Tokens of all prompts of a decision. */
export type DecisionUsage = {
  /** Summed over prompts. */
  readonly input_tokens: number;
  readonly input_tokens_details: {
    /** Taken from the prefix cache. */
    readonly cached_tokens: number;
    /** Computed for this decision. */
    readonly cache_write_tokens: number;
  };
  /** Always 0, because no tokens are generated. */
  readonly output_tokens: number;
  readonly output_tokens_details: { readonly reasoning_tokens: number };
  readonly total_tokens: number;
};

/** The answers to the questions of a decision: a list for a list, a map for a map. */
export type Decision<Questions extends DecisionRequest['questions'] = DecisionRequest['questions']> = {
  readonly model: string;
  readonly answers: {
    readonly [Key in keyof Questions]: Questions[Key] extends DecisionQuestion
      ? DecisionAnswerOf<Questions[Key]>
      : never;
  };
  readonly usage: DecisionUsage;
};
