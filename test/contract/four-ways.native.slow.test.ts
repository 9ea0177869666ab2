/** Every request of the suites, in process, in another one and over a port, whole and streamed: the same message, finish reason and usage. */
import { isDeepStrictEqual } from 'node:util';
import { expect, it } from 'vitest';
import type { OnpolicyError } from '../../src/errors.ts';
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionRequest,
  Usage,
} from '../../src/protocol/index.ts';
import type { Completions } from '../../src/protocol/service/index.ts';
import { suiteRequests } from './suite-requests.ts';
import { serveSuites } from './suite-services.ts';

const served = serveSuites();

/** The parts of an answer that must be equal: all that a client reads, except ids of calls, which are drawn. */
type Answered = {
  readonly choices: readonly unknown[];
  readonly usage: unknown;
};

function ofWhole({ choices, usage }: ChatCompletion): Answered {
  return {
    choices: choices.map(({ message, finish_reason, stop_reason, logprobs, token_ids }) => ({
      content: message.content ?? '',
      reasoning: message.reasoning ?? '',
      calls: message.tool_calls.map(({ id: _, ...call }) => call),
      function_call: message.function_call,
      finish_reason,
      stop_reason,
      tokens: logprobs?.content.map(({ token }) => token) ?? [], // the batch decides the last digits of their numbers
      token_ids: token_ids ?? [],
    })),
    usage: counts(usage),
  };
}

/** How many drafts there were depends on how long steps took. */
function counts({ completion_tokens_details: _, ...usage }: Usage): unknown {
  return usage;
}

function ofStream(chunks: readonly ChatCompletionChunk[]): Answered {
  const count = 1 + Math.max(-1, ...chunks.flatMap(({ choices }) => choices.map(({ index }) => index)));
  return {
    choices: Array.from({ length: count }, (_, index) => {
      const own = chunks.flatMap(({ choices }) => choices.filter((choice) => choice.index === index));
      const deltas = own.map(({ delta }) => delta);
      const last = own.at(-1)!;
      const old = deltas.flatMap(({ function_call }) => function_call ?? []);
      return {
        content: deltas.map(({ content }) => content ?? '').join(''),
        reasoning: deltas.map(({ reasoning }) => reasoning ?? '').join(''),
        calls: joinCalls(deltas.flatMap(({ tool_calls }) => tool_calls ?? [])),
        function_call:
          old.length === 0
            ? null
            : {
                name: old.map(({ name }) => name ?? '').join(''),
                arguments: old.map((part) => part.arguments ?? '').join(''),
              },
        finish_reason: last.finish_reason,
        stop_reason: last.stop_reason,
        tokens: own.flatMap(({ logprobs }) => (logprobs?.content ?? []).map(({ token }) => token)),
        token_ids: own.flatMap(({ token_ids }) => token_ids ?? []),
      };
    }),
    usage: counts(chunks.at(-1)!.usage!),
  };
}

type CallDelta = NonNullable<ChatCompletionChunk['choices'][number]['delta']['tool_calls']>[number];

function joinCalls(parts: readonly CallDelta[]): unknown[] {
  const indexes = [...new Set(parts.map(({ index }) => index))];
  return indexes.map((index) => {
    const own = parts.filter((part) => part.index === index);
    const join = (read: (part: CallDelta) => string | undefined): string =>
      own.map((part) => read(part) ?? '').join('');
    return own[0]!.type === 'custom'
      ? {
          type: 'custom',
          custom: { name: join(({ custom }) => custom?.name), input: join(({ custom }) => custom?.input) },
        }
      : {
          type: own[0]!.type,
          function: {
            name: join(({ function: made }) => made?.name),
            arguments: join(({ function: made }) => made?.arguments),
          },
        };
  });
}

/** The answer, or the error as a client sees it. */
async function ask(
  service: Completions,
  request: ChatCompletionRequest,
  isStream: boolean,
): Promise<unknown> {
  try {
    if (!isStream) return ofWhole(await service.createCompletion({ ...request, stream: false }));
    const chunks: ChatCompletionChunk[] = [];
    const asked = { ...request, stream: true as const, stream_options: { include_usage: true } };
    for await (const chunk of await service.createCompletion(asked)) chunks.push(chunk);
    return ofStream(chunks);
  } catch (error) {
    const { code, param, message } = error as OnpolicyError;
    return { code, param, message };
  }
}

it('are the same', { timeout: 600_000 }, async () => {
  const requests = suiteRequests();
  const outcomes = { answered: 0, refused: 0 };
  const problems: string[] = [];
  const { runtime, isolated, client } = served;
  const services = { 'in process': runtime, 'in another process': isolated, 'over HTTP': client };
  for (const [name, request] of requests) {
    const isStreamOnly = request.return_progress === true;
    const first = await ask(runtime, request, isStreamOnly);
    const isRefused = 'code' in (first as object);
    outcomes[isRefused ? 'refused' : 'answered'] += 1;
    // Log-probabilities of a prompt do not stream.
    const ways = isStreamOnly ? [true] : (request.prompt_logprobs ?? 0) === 0 ? [false, true] : [false];
    for (const isStream of ways)
      for (const [place, service] of Object.entries(services)) {
        if (service === runtime && isStream === isStreamOnly) continue;
        const where = `${name}, ${place}, ${isStream ? 'streamed' : 'whole'}`;
        const given = await ask(service, request, isStream);
        if (!isDeepStrictEqual(given, first))
          problems.push(`${where}: ${JSON.stringify(given)} instead of ${JSON.stringify(first)}`);
      }
  }
  expect(problems.slice(0, 20), `${problems.length} differ`).toEqual([]);
  process.stdout.write(`${JSON.stringify(outcomes)}\n`);
  expect(outcomes.answered).toBeGreaterThan(0.9 * requests.length);
});
