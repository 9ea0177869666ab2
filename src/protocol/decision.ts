/** Validation of decisions: any input -> the messages of the input, and the questions about it. */
import type { ErrorDetail } from '../errors.ts';
import { admitChatRequest, type ChatRequestOptions, checkChatRequest } from './chat-completion.ts';
import type { Checked } from './checked.ts';
import { dataOf, inputFaults, jsonFaults, partsOf, toDecisionMessages } from './decision-input.ts';
import { fault, throwFaults } from './faults.ts';
import { fills } from './generated/fills.ts';
import type {
  ChatCompletionRequest,
  DecisionChoice,
  DecisionPredicate,
  DecisionQuestion,
  DecisionRequest,
  DecisionScore,
} from './generated/request-types.ts';
import { toParts } from './normalize-message.ts';
import type { PathTranslation } from './path-translation.ts';
import { MOST_QUESTIONS } from './schemas/decision.ts';
import type { ChatContentPart, ValidChatRequest } from './valid-chat-request.ts';
import { checkRequest, readingInput, type ValidationOptions } from './validate.ts';

/** Kinds of questions. */
export type DecisionKind = DecisionQuestion['type'];

/** A question, its name, its path in the caller's request, and its text as parts of a message. */
export type ValidQuestion = {
  readonly name: string | null;
  readonly path: string;
  readonly asks: readonly (ChatContentPart & { readonly path?: string })[];
} & (DecisionPredicate | DecisionChoice | DecisionScore);

export type ValidDecisionRequest = {
  /** The messages of the input, and the fields that a decision shares with chats. Reasoning is off. */
  readonly chat: ValidChatRequest;
  /** The input as decision files read it: a text, the data of an only part of JSON, or messages. */
  readonly state: unknown;
  readonly questions: readonly ValidQuestion[];
  /** True if the questions were given as a map. The answers are then returned as a map. */
  readonly isMap: boolean;
  readonly orders: number;
  /** True if whole texts of options are read in place of labels. */
  readonly readsText: boolean;
  /** By kind of question. Null: the one that was fitted for the model. */
  readonly temperatures: Readonly<Record<DecisionKind, number | null>>;
  readonly returnTokenIds: boolean;
  /** The caller's names of the fields of `chat`. */
  readonly paths: PathTranslation;
};

/** Checks a request. Throws `INVALID_REQUEST` with all faults. */
export function checkDecisionRequest(
  input: unknown,
  options: ValidationOptions = {},
): Checked<DecisionRequest> {
  return readingInput(input, () => {
    const request = checkRequest('DecisionRequest', input, options) as Checked<DecisionRequest>;
    throwFaults([...inputFaults(request.input), ...questionsFaults(request)]);
    const { chat, paths } = toChat(request);
    paths.runNow(() => checkChatRequest(chat));
    return request;
  });
}

/** Normalizes a checked request. Throws `INVALID_REQUEST` for what this runtime does not allow. */
export function admitDecisionRequest(
  request: Checked<DecisionRequest>,
  limits: ChatRequestOptions,
): ValidDecisionRequest {
  const { questions, orders, read, temperature, return_token_ids } = fills.DecisionRequest(request);
  const { chat: translated, paths } = toChat(request);
  const chat = paths.runNow(() => admitChatRequest(translated as Checked<ChatCompletionRequest>, limits));
  const temperatureOf = (kind: DecisionKind): number | null =>
    (typeof temperature === 'number' ? temperature : temperature?.[kind]) ?? null;
  return {
    chat,
    state: dataOf(request.input) ?? translated.messages,
    questions: entriesOf(questions).map(([name, path, question]) => ({
      ...question,
      name,
      path,
      asks: toParts(partsOf(question.instructions)).map((part, k) => ({
        ...part,
        path: `${path}.instructions${typeof question.instructions === 'string' ? '' : `.${k}`}`,
      })),
    })),
    isMap: !Array.isArray(questions),
    orders,
    readsText: read === 'text',
    temperatures: {
      predicate: temperatureOf('predicate'),
      choice: temperatureOf('choice'),
      score: temperatureOf('score'),
    },
    returnTokenIds: return_token_ids,
    paths,
  };
}

type Entry = readonly [name: string | null, path: string, question: DecisionQuestion];

function entriesOf(questions: DecisionRequest['questions']): Entry[] {
  return Array.isArray(questions)
    ? (questions as readonly DecisionQuestion[]).map(
        (one, i): Entry => [one.name ?? null, `questions.${i}`, one],
      )
    : Object.entries(questions).map(([name, one]): Entry => [name, `questions.${name}`, one]);
}

function questionsFaults({ questions, orders, read }: Checked<DecisionRequest>): ErrorDetail[] {
  const entries = entriesOf(questions);
  if (read === 'text' && (orders ?? 1) > 1)
    return [fault(['orders'], 'conflict', "1 with read: 'text', which lists no options", orders)];
  if (entries.length < 1 || entries.length > MOST_QUESTIONS)
    return [fault(['questions'], 'length', `1 to ${MOST_QUESTIONS} questions`, questions)];
  const names = new Set<string>();
  return entries.flatMap(([name, path, question]) => {
    const loc = path.split('.');
    const faults = jsonFaults([...loc, 'instructions'], question.instructions);
    if (name === '') faults.push(fault(loc, 'length', 'a question with a name that is not empty', question));
    if (name !== null && names.has(name))
      faults.push(fault([...loc, 'name'], 'conflict', 'a name that no other question has', name));
    if (name !== null) names.add(name);
    if (question.type === 'choice') faults.push(...choiceFaults(loc, question, orders ?? 1));
    return faults;
  });
}

function choiceFaults(loc: readonly string[], { choices }: DecisionChoice, orders: number): ErrorDetail[] {
  const values = new Set<string | boolean>();
  const faults = choices.flatMap(({ value }, k) => {
    const isTwice = values.has(value);
    values.add(value);
    const at = [...loc, 'choices', String(k), 'value'];
    return isTwice ? [fault(at, 'conflict', 'a value that no other choice has', value)] : [];
  });
  if (orders > choices.length)
    faults.push(
      fault(['orders'], 'range', `at most the ${choices.length} options of ${loc.join('.')}`, orders),
    );
  return faults;
}

/**
 * Returns the chat request of a decision, without a question, and its paths in the caller's request. A question is appended, and the next
 * token answers it.
 */
function toChat(request: DecisionRequest): {
  readonly chat: ChatCompletionRequest;
  readonly paths: PathTranslation;
} {
  const { messages, paths } = toDecisionMessages(request.input);
  const { model, adapters, cache_salt, priority, timeout_ms, keep_alive, truncate_prompt_tokens } = request;
  const chat = {
    ...{ model, adapters, cache_salt, priority, timeout_ms, keep_alive, truncate_prompt_tokens },
    messages,
    reasoning_effort: 'none' as const,
    max_completion_tokens: 1,
    temperature: 0,
    logprobs: true,
  };
  return { chat, paths };
}
