/** Random requests over most fields at once: the joined stream equals the whole answer, and counts agree. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OnpolicyError } from '../../../src/errors.ts';
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionRequest,
} from '../../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime.ts';
import { randomNumbers } from '../../fakes/random-numbers.ts';
import { chunksOf, EXACT_MODEL, type Fields } from './model.ts';

const CASES = 240;
const TOGETHER = 12;
const QUESTIONS = [
  'What is the capital of France?',
  'Tell me a story.',
  'Count from 1 to 9.',
  'What is the weather in Paris?',
];

let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1, model: { path: EXACT_MODEL, toolFormat: 'hermes' } });
});
afterAll(() => runtime.close());

function randomRequest(next: () => number): ChatCompletionRequest {
  const one = <T>(...choices: readonly T[]): T => choices[Math.floor(next() * choices.length)]!;
  const often = (share: number, fields: () => Fields): Fields => (next() < share ? fields() : {});
  const id = (): number => Math.floor(next() * 300);
  const beams = next() < 0.12;
  const temperature = one(0, 0, 0.7, 1.3);
  const question = { role: 'user' as const, content: one(...QUESTIONS) };
  const continued = next() < 0.2;
  const steering: Fields = beams
    ? { use_beam_search: true, length_penalty: one(0.5, 1, 2) }
    : {
        temperature,
        seed: Math.floor(next() * 1000),
        ...often(0.2, () => ({ top_p: 0.8 })),
        ...often(0.2, () => ({ top_k: 5 })),
        ...often(0.2, () => ({ min_p: 0.02 })),
        ...often(0.2, () => ({ frequency_penalty: one(-0.5, 1) })),
        ...often(0.2, () => ({ presence_penalty: 0.7 })),
        ...often(0.2, () => ({ repetition_penalty: 1.2 })),
        ...often(0.2, () => ({ min_tokens: one(1, 4) })),
        ...often(0.2, () => ({ logits_processors: [() => {}] })),
        ...often(0.2, () => ({
          structured_outputs: one(
            { regex: '[a-z ]{3,9}' },
            { choice: ['Paris', 'Rome!'] },
            { json_object: true },
          ),
        })),
      };
  return {
    messages: continued ? [question, { role: 'assistant', content: 'Well, the' }] : [question],
    continue_final_message: continued,
    n: beams || temperature > 0 ? one(1, 2, 3) : 1,
    max_tokens: one(4, 9, 24),
    return_token_ids: true,
    ...steering,
    ...often(0.3, () => ({ stop: one(['a'], [' c', 'e '], ['the'], ['2, 3', '7']) })),
    ...often(0.2, () => ({ stop_token_ids: [id(), id(), id()] })),
    ...often(0.3, () => ({ include_stop_str_in_output: true })),
    ...often(0.2, () => ({ ignore_eos: true })),
    ...often(0.2, () => ({ skip_special_tokens: false, spaces_between_special_tokens: one(true, false) })),
    ...often(0.2, () => ({ logit_bias: { [id()]: 3, [id()]: -3 } })),
    ...often(0.2, () => ({ bad_words: [one('Paris', 'the', ','), 'story'] })),
    ...often(0.4, () => ({
      logprobs: true,
      top_logprobs: one(0, 2, 5),
      return_tokens_as_token_ids: one(true, false),
    })),
    ...often(0.3, () => ({ echo: true })),
    ...often(0.2, () => ({ truncate_prompt_tokens: one(5, 12, -1) })),
    ...often(0.2, () => ({ cache_salt: one('a', 'b') })),
    ...often(0.25, () => ({
      tools: [
        {
          type: 'function',
          function: {
            name: 'get_weather',
            parameters: { type: 'object', properties: { city: { type: 'string' } } },
          },
        },
      ],
      parallel_tool_calls: one(true, false),
    })),
  };
}

type Joined = {
  readonly content: string;
  readonly calls: { name: string; arguments: string }[];
  readonly token_ids: number[] | null;
  readonly tokens: readonly string[] | null;
  readonly finish_reason: string | null;
  readonly stop_reason: string | number | null | undefined;
};

/** What the chunks of one choice join to. */
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
    calls: message.tool_calls.map((call) => call.function),
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
