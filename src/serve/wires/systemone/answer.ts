/** A request of TypeSafe's System One -> the equivalent decision, and its answers in that form. */
import { OnpolicyError } from '../../../errors.ts';
import {
  checkRequest,
  type Decision,
  type DecisionAnswer,
  type DecisionPart,
  type DecisionQuestion,
  type DecisionRequest,
  fault,
  freeFormFault,
  MOST_CHOICES,
  PathTranslation,
  type SystemOneQuestion,
  type SystemOneRequest,
  throwFaults,
  type ValidationOptions,
} from '../../../protocol/index.ts';
import type { CallOptions, Completions } from '../../../protocol/service/index.ts';

/** Text, or JSON data. */
type Entry = string | object | null | undefined;

/** Returns true if a body is in this form: it has its subject in `state`. */
export function isSystemOne(body: unknown): boolean {
  return typeof body === 'object' && body !== null && 'state' in body && !('input' in body);
}

/** Checks a request. @throws OnpolicyError `INVALID_REQUEST` with all faults */
export function checkSystemOne(input: unknown, options: ValidationOptions): SystemOneRequest {
  const request = checkRequest('SystemOneRequest', input, options);
  const { state, questions } = request;
  const entries = Object.entries(questions);
  throwFaults([
    ...(entries.length === 0 ? [fault(['questions'], 'length', 'at least one question', questions)] : []),
    ...[freeFormFault(['state'], state)].filter((found) => found !== null),
    ...entries.flatMap(([name, { type, instructions, criteria }]) => {
      const loc = ['questions', name];
      const count = type === 'choice' ? Object.keys(criteria).length : 1;
      if (count < 1 || count > MOST_CHOICES)
        return [fault([...loc, 'criteria'], 'length', `1 to ${MOST_CHOICES} labels`, criteria)];
      const { true: yes, false: no } = (type === 'noul' ? criteria : null) ?? {};
      const saysNothing = type === 'noul' && [instructions, yes, no].every((one) => textOf(one) === '');
      if (saysNothing)
        return [fault([...loc, 'instructions'], 'missing', 'a question, or criteria', instructions)];
      const found = freeFormFault(loc, { instructions, criteria });
      return found ? [found] : [];
    }),
  ]);
  return request;
}

/** Answers a checked request. A question with only one label or level is answered without the model. */
export async function answerSystemOne(
  service: Completions,
  request: SystemOneRequest,
  call: CallOptions,
): Promise<object> {
  if (!service.decide) throw new OnpolicyError('UNSUPPORTED', 'this service has no decisions');
  const { state, images, files, questions: given, ...shared } = request;
  const paths = new PathTranslation({ input: 'state' });
  const asked = Object.entries(given).filter(([, question]) => optionsOf(question) > 1);
  const decision: Pick<Decision<Record<string, DecisionQuestion>>, 'model' | 'answers' | 'usage'> | null =
    asked.length === 0
      ? null
      : await paths.run(() =>
          service.decide!(
            {
              ...shared,
              input: inputOf(state, [...(images ?? []), ...(files ?? [])]),
              questions: Object.fromEntries(asked.map(([name, question]) => [name, toQuestion(question)])),
            },
            call,
          ),
        );
  const { input_tokens = 0, output_tokens = 0 } = decision?.usage ?? {};
  return {
    model: decision?.model ?? request.model ?? '',
    answers: Object.fromEntries(
      Object.entries(given).map(([name, question]) => [name, toAnswer(question, decision?.answers[name])]),
    ),
    usage: { input_tokens, output_tokens },
  };
}

function inputOf(state: Entry, pictures: readonly string[]): DecisionRequest['input'] {
  if (pictures.length === 0 && !isJson(state)) return textOf(state);
  const content: DecisionPart[] = [
    partOf(state),
    ...pictures.map((data): DecisionPart => {
      const isUrl = /^[a-z]+:/i.test(data);
      return { type: 'input_image', image_url: isUrl ? data : `data:image/*;base64,${data}` };
    }),
  ];
  return [{ role: 'user', content }];
}

/** Returns true for data that a part of JSON may hold: an object, or a list of objects. */
function isJson(entry: Entry): entry is object {
  if (!Array.isArray(entry)) return typeof entry === 'object' && entry !== null;
  return (
    entry.length > 0 && entry.every((one) => typeof one === 'object' && one !== null && !Array.isArray(one))
  );
}

/** Returns JSON as a part that decision files read as data, and all else as text. */
function partOf(entry: Entry): DecisionPart {
  return isJson(entry) ? { type: 'input_json', data: entry } : { type: 'input_text', text: textOf(entry) };
}

function optionsOf(question: SystemOneQuestion): number {
  if (question.type === 'noul') return 2;
  return question.type === 'choice' ? Object.keys(question.criteria).length : question.criteria.length;
}

function toQuestion(question: SystemOneQuestion): DecisionQuestion {
  const { instructions: given } = question;
  const instructions = isJson(given) ? [partOf(given)] : textOf(given);
  switch (question.type) {
    case 'noul': {
      const yes = textOf(question.criteria?.true);
      const no = textOf(question.criteria?.false);
      const criteria = { true: yes || null, false: no || null };
      return { type: 'predicate', instructions: instructions || yes || `It is not so: ${no}`, criteria };
    }
    case 'choice':
      return {
        type: 'choice',
        instructions: instructions || 'Which option fits?',
        choices: Object.entries(question.criteria).map(([value, meaning]) => ({
          value,
          description: textOf(meaning) || null,
        })),
      };
    case 'score':
      return {
        type: 'score',
        instructions: instructions || 'Which level fits?',
        levels: question.criteria.map((meaning, level) => ({ label: textOf(meaning) || String(level) })),
      };
  }
}

function toAnswer(question: SystemOneQuestion, answer: DecisionAnswer | undefined): object {
  switch (question.type) {
    case 'noul':
      return { type: 'noul', noul: answer?.type === 'predicate' ? answer.probability : 1 };
    case 'choice': {
      const [only] = Object.keys(question.criteria);
      if (answer?.type !== 'choice')
        return { type: 'choice', choice: only, confidence: 1, probabilities: { [only!]: 1 } };
      const { choice, confidence, probabilities } = answer;
      const byLabel = probabilities.map(({ value, probability }) => [value, probability]);
      return { type: 'choice', choice, confidence, probabilities: Object.fromEntries(byLabel) };
    }
    case 'score': {
      const legend = Object.fromEntries(question.criteria.entries());
      if (answer?.type !== 'score')
        return { type: 'score', score: 0, confidence: 1, legend, probabilities: { 0: 1 } };
      const { score, confidence, probabilities } = answer;
      const byLevel = probabilities.map(({ value, probability }) => [value, probability]);
      return { type: 'score', score, confidence, legend, probabilities: Object.fromEntries(byLevel) };
    }
  }
}

function textOf(entry: Entry): string {
  return typeof entry === 'string' ? entry : entry == null ? '' : JSON.stringify(entry);
}
