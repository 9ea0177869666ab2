/** Several conversations in one request -> one answer whose choices are theirs, as in vLLM. */
import type { ErrorDetail } from '../../../errors.ts';
import {
  type ChatCompletion,
  fault,
  PathTranslation,
  sumUsage,
  throwFaults,
} from '../../../protocol/index.ts';
import { callChecked, hasMethod } from '../../checked-calls.ts';
import { limit, type RequestContext, unsupported } from './context.ts';
import { readBody } from './method-endpoints.ts';
import { answerResponse } from './stream-response.ts';
import type { ServedResponse } from './wire.ts';

/** Fields of an answer about one prompt, which an answer to several has no place for. */
const OF_ONE_PROMPT = [
  ...['stream', 'stream_options', 'prompt_logprobs', 'kv_transfer_params', 'return_prompt_text'],
  ...['return_timings', 'timings_per_token', 'return_progress'],
];

/** `POST /v1/chat/completions/batch`: `messages` is a list of conversations. They are answered at the same time. */
export async function answerChats(context: RequestContext): Promise<ServedResponse> {
  const { service, call, settings } = context;
  const body = await context.body();
  const conversations = conversationsOf(body);
  limit('messages', conversations.length, settings.maxInputs);
  const { request_id: id, ...rest } = body as Record<string, unknown>;
  const asked: { request: object; paths: PathTranslation }[] = [];
  for (const [i, messages] of conversations.entries()) {
    const paths = new PathTranslation({ messages: `messages.${i}` });
    const own =
      typeof id === 'string' && id !== ''
        ? { request_id: `${id}-${i}` }
        : id === undefined
          ? {}
          : { request_id: id };
    const one = { ...rest, ...own, messages };
    asked.push({ paths, request: await paths.run(() => readBody('createCompletion', one, context)) });
  }
  if (!hasMethod(service, 'createCompletion')) throw unsupported('chat completions');
  const stop = new AbortController();
  const signal = AbortSignal.any([call.signal, stop.signal]);
  const ask = async ({ request, paths }: (typeof asked)[number]) =>
    await paths.run(
      async () =>
        (await callChecked(service, 'createCompletion', request, { ...call, signal })) as ChatCompletion,
    );
  try {
    return answerResponse(joined(await Promise.all(asked.map(ask))), context);
  } catch (error) {
    stop.abort(); // the others
    throw error;
  }
}

/** Returns the conversations of a body. Throws `INVALID_REQUEST` if it has none, or fields that only one prompt can have. */
function conversationsOf(body: unknown): readonly unknown[] {
  const { messages, ...rest } = (body ?? {}) as Readonly<Record<string, unknown>>;
  const faults: ErrorDetail[] = OF_ONE_PROMPT.filter((field) => rest[field]).map((field) =>
    fault([field], 'conflict', 'no value for several conversations', rest[field]),
  );
  if (!Array.isArray(messages) || messages.length === 0)
    faults.push(fault(['messages'], 'type', 'a list of conversations', messages));
  else
    for (const [i, one] of messages.entries())
      if (!Array.isArray(one)) faults.push(fault(['messages', String(i)], 'type', 'a list of messages', one));
  throwFaults(faults);
  return messages as readonly unknown[];
}

function joined(answers: readonly ChatCompletion[]): ChatCompletion {
  const [first] = answers;
  const choices = answers.flatMap((answer) => answer.choices);
  const warnings = answers.flatMap((answer) => answer.warnings ?? []);
  return {
    ...first!,
    choices: choices.map((choice, index) => ({ ...choice, index })),
    seed: null,
    prompt_token_ids: null,
    usage: sumUsage(answers.map(({ usage }) => usage)),
    ...(warnings.length > 0 ? { warnings: [...new Set(warnings)] } : {}),
  };
}
