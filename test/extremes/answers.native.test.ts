/**
 * Completions of extremes that the entry point takes -> answers of the embedded model, in process and over HTTP: none fails on its
 * own side, and what was asked for has its effect. `ONPOLICY_DRAWS=2000000` asks more.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type ChatCompletion,
  type ChatCompletionRequest,
  checkAndAdmitChat,
} from '../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { createHandler, type Handler } from '../../src/serve/http/index.ts';
import { countOf } from '../counts.ts';
import { type Draw, inWords, random } from './draws.ts';
import { problemOf } from './entry-points.ts';
import { COMPLETION } from './forms.ts';

const REQUESTS = Math.ceil(countOf('ONPOLICY_DRAWS', 100_000) / 100);
const AT_ONCE = 16;
const MOST_CHOICES = 8;
const MOST_MS = 30_000; // of one answer, of many at once on a busy machine

let runtime: Runtime;
let handler: Handler;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1, contextSize: 256, scheduling: 'priority' });
  handler = createHandler(runtime);
});
afterAll(() => runtime.close());

/** Returns a field of the request that had no effect on the answer, or null. */
function brokenPromise(request: ChatCompletionRequest, answer: ChatCompletion): string | null {
  const { n, stop, logprobs, top_logprobs, return_token_ids, request_id, model } = request;
  const most = request.max_completion_tokens ?? request.max_tokens;
  const { choices, usage } = answer;
  if (!request.use_beam_search && choices.length !== (n ?? 1)) return `gave ${choices.length} choices`;
  if (most != null && usage!.completion_tokens > most * choices.length)
    return 'generated more than max_tokens';
  if (request_id && answer.id !== `chatcmpl-${request_id}`) return 'has another id';
  if (model && answer.model !== model) return `is of ${answer.model}`;
  for (const { message, logprobs: found, token_ids, finish_reason } of choices) {
    const text = message.content ?? '';
    if (Boolean(found) !== Boolean(logprobs)) return 'has other log-probabilities';
    if (
      top_logprobs &&
      top_logprobs > 0 &&
      found?.content?.some((one) => one.top_logprobs.length < top_logprobs)
    )
      return 'has too few top_logprobs';
    if (Boolean(token_ids) !== Boolean(return_token_ids)) return 'has other token ids';
    if (!request.include_stop_str_in_output && !request.echo && !request.min_tokens)
      for (const one of [stop ?? []].flat()) if (text.includes(one)) return `holds the stop text ${one}`;
    if (request.ignore_eos && finish_reason === 'stop' && !stop && !request.stop_token_ids)
      return 'ended early';
    if (request.include_reasoning === false && message.reasoning) return 'has reasoning';
  }
  return null;
}

/** Asks in process, or over HTTP what JSON can hold. */
async function ask(request: ChatCompletionRequest, overHttp: boolean): Promise<string | null> {
  if (overHttp) {
    const body = JSON.stringify({ ...request, stream: false, stream_options: null });
    const response = await handler(
      new Request('http://localhost/v1/chat/completions', { method: 'POST', body }),
    );
    const answer = (await response.json()) as ChatCompletion & {
      error?: { param: string; detail?: unknown[] };
    };
    if (response.status === 200) return brokenPromise(JSON.parse(body) as ChatCompletionRequest, answer);
    if (response.status >= 500) return `a ${response.status}: ${JSON.stringify(answer).slice(0, 300)}`;
    return answer.error?.param || answer.error?.detail ? null : `named no field: ${JSON.stringify(answer)}`;
  }
  try {
    const answer = await runtime.createCompletion(request);
    if (!(Symbol.asyncIterator in answer)) return brokenPromise(request, answer);
    for await (const { choices } of answer) if (choices.length > MOST_CHOICES) return 'has too many choices';
    return null;
  } catch (error) {
    return problemOf(error);
  }
}

/** Returns true if the entry point accepts the draw, and it is not too much work for a test. */
function isShort({ input }: Draw): boolean {
  try {
    const { n, max_completion_tokens, truncate_prompt_tokens } = checkAndAdmitChat(input, {
      scheduling: 'priority',
    });
    return n <= MOST_CHOICES && (max_completion_tokens ?? 99) < 99 && truncate_prompt_tokens !== 0;
  } catch {
    return false;
  }
}

it('answers what the entry points let through', { timeout: 120_000 + 100 * REQUESTS }, async () => {
  const problems: string[] = [];
  const draws = random(COMPLETION, 7);
  let asked = 0;
  const worker = async (): Promise<void> => {
    while (asked < REQUESTS) {
      const draw = draws.next().value!;
      if (!isShort(draw)) continue;
      const overHttp = draw.isJson && asked++ % 2 === 0;
      const startMs = performance.now();
      const problem = await ask(draw.input as ChatCompletionRequest, overHttp);
      const ms = performance.now() - startMs;
      if (problem ?? ms > MOST_MS) problems.push(`${inWords(draw)}: ${problem ?? `took ${ms} ms`}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  expect(problems.slice(0, 40), `${problems.length} of ${REQUESTS}`).toEqual([]);
  expect(runtime.stats()).toMatchObject({ running: 0, waiting: 0 });
});
