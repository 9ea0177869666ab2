/** Random requests over most fields at once: the joined stream equals the whole answer, and counts agree. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OnpolicyError } from '../../../src/errors.ts';
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionRequest,
} from '../../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { functionsOf } from '../../fakes/calls.ts';
import { randomNumbers } from '../../fakes/random-numbers.ts';
import { chunksOf, EXACT_MODEL } from './model.ts';
import { randomRequest } from './random-request.ts';

const CASES = 240;
const TOGETHER = 12;

let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1, model: { path: EXACT_MODEL, toolFormat: 'hermes' } });
});
afterAll(() => runtime.close());

type Joined = {
  readonly content: string;
  readonly calls: { name: string; arguments: string }[];
  readonly token_ids: number[] | null;
  readonly tokens: readonly string[] | null;
  readonly finish_reason: string | null;
  readonly stop_reason: string | number | null | undefined;
};

/** Joins the chunks of one choice. */
function joined(chunks: readonly ChatCompletionChunk[], index: number): Joined {
  const own = chunks.flatMap(({ choices }) => choices.filter((choice) => choice.index === index));
  const calls = new Map<number, { name: string; arguments: string }>();
  for (const { delta } of own)
    for (const call of delta.tool_calls ?? []) {
      const known = calls.get(call.index) ?? { name: '', arguments: '' };
      known.name += call.function?.name ?? '';
      known.arguments += call.function?.arguments ?? '';
      calls.set(call.index, known);
    }
  const last = own.at(-1)!;
  for (const { finish_reason } of own.slice(0, -1)) expect(finish_reason).toBeNull();
  return {
    content: own.map(({ delta }) => delta.content ?? '').join(''),
    calls: [...calls.values()],
    token_ids: own.flatMap(({ token_ids }) => token_ids ?? []),
    tokens:
      last.logprobs && own.flatMap(({ logprobs }) => (logprobs?.content ?? []).map(({ token }) => token)),
    finish_reason: last.finish_reason,
    stop_reason: last.stop_reason,
  };
}

function asJoined({
  message,
  token_ids,
  logprobs,
  finish_reason,
  stop_reason,
}: ChatCompletion['choices'][number]): Joined {
  return {
    content: message.content ?? '',
    calls: functionsOf(message.tool_calls),
    token_ids,
    tokens: logprobs?.content.map(({ token }) => token) ?? null,
    finish_reason,
    stop_reason,
  };
}

function expectSound(
  request: ChatCompletionRequest,
  { choices, usage, prompt_token_ids }: ChatCompletion,
): void {
  let tokens = 0;
  for (const [index, choice] of choices.entries()) {
    const ids = choice.token_ids!;
    tokens += ids.length;
    expect(choice.index).toBe(index);
    expect(ids.length).toBeLessThanOrEqual(request.max_tokens! + (request.use_beam_search ? 1 : 0));
    if (
      choice.finish_reason === 'length' &&
      choice.message.tool_calls.length === 0 &&
      !request.use_beam_search
    )
      expect(ids.length === request.max_tokens || request.tools !== undefined).toBe(true);
    if (request.logprobs) expect(choice.logprobs!.content).toHaveLength(ids.length);
    else expect(choice.logprobs).toBeNull();
    for (const { logprob, top_logprobs } of choice.logprobs?.content ?? []) {
      expect(logprob).toBeLessThanOrEqual(0);
      expect(top_logprobs).toHaveLength(request.top_logprobs!);
      if (top_logprobs.length > 0) expect(logprob).toBeLessThanOrEqual(top_logprobs[0]!.logprob + 1e-6);
    }
    for (const stop of (request.stop ?? []) as string[])
      if (
        !request.include_stop_str_in_output &&
        !request.min_tokens &&
        !request.echo &&
        choice.message.tool_calls.length === 0
      )
        expect(choice.message.content ?? '').not.toContain(stop);
  }
  expect(usage.completion_tokens).toBe(tokens);
  expect(usage.prompt_tokens).toBe(prompt_token_ids!.length);
  expect(usage.total_tokens).toBe(usage.prompt_tokens + tokens);
}

async function check(request: ChatCompletionRequest): Promise<string> {
  const [whole, chunks] = await Promise.allSettled([
    runtime.createCompletion({ ...request, stream: false }),
    chunksOf(runtime, { ...request, stream_options: { include_usage: true } }),
  ]);
  if (whole.status === 'rejected' || chunks.status === 'rejected') {
    const errors = [whole, chunks].map((one) => (one as PromiseRejectedResult).reason as unknown);
    for (const error of errors) expect(error, JSON.stringify(request)).toBeInstanceOf(OnpolicyError);
    const [first, second] = errors as OnpolicyError[];
    expect(first!.code).toBe(second!.code);
    return first!.code;
  }
  expectSound(request, whole.value);
  for (const choice of whole.value.choices) {
    const found = joined(chunks.value, choice.index);
    // A call that breaks off has been announced in the stream: only its text is left of it in the whole answer.
    if (choice.finish_reason === 'length') found.calls.length = choice.message.tool_calls.length;
    expect(found, JSON.stringify(request)).toEqual(asJoined(choice));
  }
  expect(chunks.value.at(-1)!.usage!.completion_tokens).toBe(whole.value.usage.completion_tokens);
  return 'answered';
}

describe('random requests', () => {
  it('give the same whole and streamed, in company, and reports that fit together', async () => {
    const next = randomNumbers(2026);
    const outcomes = new Map<string, number>();
    for (let done = 0; done < CASES; done += TOGETHER) {
      const requests = Array.from({ length: TOGETHER }, () => randomRequest(next));
      for (const outcome of await Promise.all(requests.map(check)))
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
    expect(outcomes.get('answered')).toBeGreaterThan(0.8 * CASES);
    for (const code of outcomes.keys())
      expect(['answered', 'NO_ALLOWED_TOKEN', 'INVALID_REQUEST', 'UNSUPPORTED']).toContain(code);
    expect(runtime.stats()).toMatchObject({ running: 0, waiting: 0, kvTokensInUse: 0 });
  });
});
