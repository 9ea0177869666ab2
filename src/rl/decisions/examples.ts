/** Decisions with their right answers -> three parts, and for each question its prompt, its labels and its right distribution. */
import { type Calibration, rotation } from '../../answer/index.ts';
import { seedOf } from '../../common/index.ts';
import { errorAt } from '../../errors.ts';
import {
  checkDecisionRequest,
  type Datum,
  type DecisionAnswer,
  type DecisionKind,
  type DecisionQuestion,
  type DecisionRequest,
  fault,
  PathTranslation,
  throwFaults,
} from '../../protocol/index.ts';
import type { Completions } from '../../protocol/service/index.ts';

/**
 * The right answer to a question: a boolean, the value of a choice, the number of a level, or if people disagree the weight of each option
 * in its order (of a predicate: true, false).
 */
export type RightAnswer = boolean | string | number | readonly number[];

/** A decision and what is right: a list of answers for a list of questions, a map for a map. */
export type DecisionExample = Pick<DecisionRequest, 'input' | 'questions'> & {
  readonly answers: readonly RightAnswer[] | Readonly<Record<string, RightAnswer>>;
};

/** Parts of the examples. Examples with the same input are in the same part. */
const PARTS = ['train', 'calibrate', 'heldOut'] as const;
type Part = (typeof PARTS)[number];

/** A checked example: its questions as a list, and the right distribution over the options of each. */
export type CheckedExample = {
  readonly part: Part;
  readonly input: DecisionRequest['input'];
  readonly questions: readonly DecisionQuestion[];
  readonly targets: readonly (readonly number[])[];
};

/** A question as the model reads it. */
export type AskedQuestion = {
  readonly kind: DecisionKind;
  /** Index of its example. */
  readonly example: number;
  readonly prompt: readonly number[];
  /** Token ids that count for each option. */
  readonly labels: readonly (readonly number[])[];
  readonly target: readonly number[];
  /** That of the model before it learns. */
  readonly calibration: Calibration;
};

const FIELDS: readonly string[] = ['input', 'questions', 'answers'];
/** Number of decisions that are asked at a time. */
const AT_ONCE = 16;

/** Checks examples. The part of an example is determined by a hash of its input: 60 % train, 20 % calibrate, 20 % are held out. */
export function checkExamples(examples: readonly DecisionExample[]): CheckedExample[] {
  const checked = examples.map(checkExample);
  for (const part of PARTS)
    if (!checked.some((one) => one.part === part))
      throw errorAt(
        'examples',
        'INVALID_REQUEST',
        `expected examples enough for three parts, got ${examples.length}, and none of them in ${part}`,
      );
  return checked;
}

function checkExample(example: DecisionExample, i: number): CheckedExample {
  const at = ['examples', String(i)];
  const { input, questions, answers } = example;
  throwFaults(
    Object.keys(example)
      .filter((name) => !FIELDS.includes(name))
      .map((name) =>
        fault([...at, name], 'unsupported', 'only input, questions and answers', example[name as 'input']),
      ),
  );
  const paths = new PathTranslation({
    input: [...at, 'input'].join('.'),
    questions: [...at, 'questions'].join('.'),
  });
  paths.runNow(() => checkDecisionRequest({ input, questions }));
  const entries = Object.entries(questions);
  const isList = Array.isArray(questions);
  if (Array.isArray(answers) !== isList || Object.keys(answers ?? {}).length !== entries.length)
    throwFaults([
      fault([...at, 'answers'], 'value', 'an answer for each question, in the same form', answers),
    ]);
  const targets = entries.map(([key, question]) => {
    const given = (answers as Readonly<Record<string, RightAnswer>>)[key];
    const target = targetOf(question, given);
    if (!target) throwFaults([fault([...at, 'answers', key], 'value', expectedOf(question), given)]);
    return target!;
  });
  const place = seedOf(JSON.stringify(input)) / 2 ** 31;
  const part = place < 0.6 ? 'train' : place < 0.8 ? 'calibrate' : 'heldOut';
  return { part, input, questions: entries.map(([, question]) => question), targets };
}

function optionsOf(question: DecisionQuestion): readonly (string | number | boolean)[] {
  switch (question.type) {
    case 'predicate':
      return [true, false];
    case 'choice':
      return question.choices.map(({ value }) => value);
    case 'score':
      return question.levels.map((_, level) => level);
  }
}

/** Returns the distribution of an answer. Returns null for an answer that the question does not have. */
function targetOf(question: DecisionQuestion, given: RightAnswer | undefined): readonly number[] | null {
  const options = optionsOf(question);
  if (!Array.isArray(given)) {
    const right = options.indexOf(given as string);
    return right < 0 ? null : options.map((_, k) => (k === right ? 1 : 0));
  }
  const weights = given as readonly number[];
  const sum = weights.reduce((total, one) => total + one, 0);
  const isRight = weights.length === options.length && weights.every((one) => one >= 0) && sum > 0;
  return isRight && Number.isFinite(sum) ? weights.map((one) => one / sum) : null;
}

function expectedOf(question: DecisionQuestion): string {
  const one = { predicate: 'a boolean', choice: 'the value of a choice', score: 'the number of a level' };
  return `${one[question.type]}, or a weight for each of ${optionsOf(question).length} options`;
}

/** Rotates the options of the choices of an example, as `orders` does. */
function rotated(
  { questions, targets, ...rest }: CheckedExample,
  turn: number,
  orders: number,
): CheckedExample {
  const orderOf = (question: DecisionQuestion): readonly number[] =>
    rotation(optionsOf(question).length, question.type === 'choice' ? turn : 0, orders);
  return {
    ...rest,
    questions: questions.map((question) =>
      question.type === 'choice'
        ? { ...question, choices: orderOf(question).map((k) => question.choices[k]!) }
        : question,
    ),
    targets: targets.map((target, i) => orderOf(questions[i]!).map((k) => target[k]!)),
  };
}

/** Asks a model for the prompts and labels of all questions. `turn`: the rotation of the options of choices, below `orders`. */
export async function askAll(
  decide: NonNullable<Completions['decide']>,
  model: string,
  examples: readonly (readonly [index: number, example: CheckedExample])[],
  { turn, orders, signal }: { turn: number; orders: number; signal: AbortSignal | undefined },
): Promise<AskedQuestion[]> {
  const asked: AskedQuestion[] = [];
  for (let from = 0; from < examples.length; from += AT_ONCE) {
    const some = examples.slice(from, from + AT_ONCE).map(async ([index, given]) => {
      const { input, questions, targets } = rotated(given, turn, orders);
      const named = questions.map((question, i) => ({ ...question, name: String(i) }));
      const request = { model, input, questions: named, return_token_ids: true };
      const paths = new PathTranslation({
        input: `examples.${index}.input`,
        questions: `examples.${index}.questions`,
      });
      const { answers } = await paths.run(() => decide(request, signal ? { signal } : {}));
      return (answers as readonly DecisionAnswer[]).map((answer, i) => toAsked(answer, index, targets[i]!));
    });
    asked.push(...(await Promise.all(some)).flat());
  }
  return asked;
}

function toAsked(answer: DecisionAnswer, example: number, target: readonly number[]): AskedQuestion {
  const { type: kind, prompt_token_ids, label_token_ids, temperature, noise = 0 } = answer;
  if (!prompt_token_ids || !label_token_ids || temperature === undefined)
    throw errorAt(
      'service',
      'UNSUPPORTED',
      'the service does not give the token ids of its decisions, or a label has several',
    );
  if (prompt_token_ids.some((id) => id < 0))
    throw errorAt(
      `examples.${example}`,
      'UNSUPPORTED',
      'training takes text only, and this example has pictures',
    );
  if (label_token_ids.length !== target.length)
    throw errorAt('model', 'UNSUPPORTED', 'it answers predicates by ratings, which are not trained');
  const calibration = { temperature, noise };
  return { kind, example, prompt: prompt_token_ids, labels: label_token_ids, target, calibration };
}

/**
 * Returns a datum of cross-entropy with the labels as targets behind the prompt. To learn, the first form of each option has its right
 * probability times `share`. To score, each form has a weight, so that `weighted_only` returns its log-probability.
 */
export function datumOf({ prompt, labels, target }: AskedQuestion, share: number | 'score'): Datum {
  const targets = labels.flat();
  const weights = labels.flatMap((forms, k) =>
    forms.map((_, form) => (share === 'score' ? 1 : form === 0 ? target[k]! * share : 0)),
  );
  const before = (prompt.length - 1) * targets.length;
  const padded = (values: readonly number[]): number[] => [...new Array<number>(before).fill(0), ...values];
  return {
    model_input: { chunks: [{ tokens: prompt }] },
    loss_fn_inputs: { target_tokens: padded(targets), weights: padded(weights) },
  };
}
