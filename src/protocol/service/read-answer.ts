/** The answer to a request with a format of `schema` -> the same answer with `parsed`: its JSON, read by that schema. */
import { parseJson } from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';
import type { ChatCompletionChoice } from '../index.ts';
import { AnswerIssues, type ValueReader } from '../standard-schema.ts';

/** The fields of an answer that are read. */
type Read = { readonly choices: readonly ChatCompletionChoice[] };

/**
 * Adds `parsed`: the value of the first choice, or null if it calls tools. Each choice has its own `parsed`, null also where its answer was
 * cut or does not fit; it does not show in JSON and copies, because choices are sent back in messages and trajectories.
 * @throws OnpolicyError `ANSWER_INVALID` with the text, if the first choice was cut, is no JSON, or its schema refuses it
 */
export async function readAnswer<Answer extends Read>(answer: Answer, read: ValueReader): Promise<Answer> {
  const [first, ...others] = answer.choices;
  const parsed = await readChoice(first!, read);
  define(first!, parsed);
  for (const choice of others) define(choice, await readChoice(choice, read).catch(() => null));
  return Object.assign(answer, { parsed });
}

function define(choice: ChatCompletionChoice, parsed: unknown): void {
  Object.defineProperty(choice, 'parsed', { value: parsed, configurable: true });
}

async function readChoice(choice: ChatCompletionChoice, read: ValueReader): Promise<unknown> {
  const { content, refusal, tool_calls, function_call } = choice.message;
  const hasCalls = (tool_calls?.length ?? 0) > 0 || function_call != null;
  if (hasCalls && !content) return null;
  const text = content ?? refusal ?? '';
  if (choice.finish_reason === 'length') {
    const limit = 'raise max_completion_tokens, or make the prompt shorter';
    throw invalid(
      text === ''
        ? `the answer ended while the model was thinking: ${limit}`
        : `the answer was cut: ${limit}`,
      text,
    );
  }
  const value = parseJson(text, INVALID);
  if (value === INVALID) throw invalid('the answer is not JSON', text);
  try {
    return await read(value);
  } catch (cause) {
    if (!(cause instanceof AnswerIssues)) throw cause;
    throw invalid(`the answer does not fit its schema: ${cause.message}`, text, cause);
  }
}

const INVALID = Symbol('no JSON');

function invalid(reason: string, text: string, cause?: AnswerIssues): OnpolicyError {
  return new OnpolicyError('ANSWER_INVALID', reason, {
    text,
    ...(cause ? { cause, detail: cause.detail } : {}),
  });
}
