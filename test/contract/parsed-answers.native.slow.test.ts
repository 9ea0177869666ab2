/** Every request of the suites: its answer is that of its rendered prompt, continued as tokens and read back, in process, in another one and over HTTP. */
import { isDeepStrictEqual } from 'node:util';
import { expect, it } from 'vitest';
import type { ChatCompletion, ChatCompletionRequest, GeneratedTokens } from '../../src/protocol/index.ts';
import { REASONING_FORMATS } from '../../src/template/reasoning/index.ts';
import { samplingParams } from './sampling-params.ts';
import { PLAIN, type SuiteRequest, suiteRequests } from './suite-requests.ts';
import { serveSuites } from './suite-services.ts';

const served = serveSuites();

/** The answer without what is drawn or measured: its id, times, the ids of calls, and drafts, of which there are more if steps are slow. */
function stable({ id: _, created: __, metrics: _m, timings: _t, usage, ...answer }: ChatCompletion): unknown {
  const { reasoning_tokens } = usage.completion_tokens_details!;
  return JSON.parse(
    JSON.stringify({
      ...answer,
      usage: { ...usage, completion_tokens_details: { reasoning_tokens } },
      choices: answer.choices.map(({ message, context_shift: _s, ...choice }) => ({
        ...choice,
        message: { ...message, tool_calls: message.tool_calls.map(({ id: _i, ...call }) => call) },
      })),
    }),
  );
}

/** An answer in each format of reasoning: thoughts and an answer as the model writes them. */
function reasoningRows(): SuiteRequest[] {
  return Object.values(REASONING_FORMATS).map(({ name, begin, end, answerBegin = '', answerMarkers }) => {
    const shown = [begin, end, ...(answerMarkers ?? []), answerBegin].join('');
    const chat_template = `${PLAIN}{% if false %}{{ ${JSON.stringify(shown)} }}{% endif %}`;
    const request: ChatCompletionRequest = {
      messages: [{ role: 'user', content: 'Think.' }],
      chat_template,
      temperature: 0,
      max_tokens: 200,
      structured_outputs: { regex: `${begin}two and two${end}${answerBegin}four`.replace(/[^\w ]/g, '\\$&') },
    };
    return [`reasoning of ${name}`, request];
  });
}

/** Continues the tokens of the prompt by the fields that a text completion has. */
async function generate(
  request: ChatCompletionRequest,
  token_ids: readonly number[],
): Promise<GeneratedTokens | null> {
  const { model = null } = request;
  const response = await fetch(`${served.server.url}/inference/v1/generate`, {
    method: 'POST',
    body: JSON.stringify({ model, token_ids, sampling_params: samplingParams(request) }),
  });
  return response.ok ? ((await response.json()) as GeneratedTokens) : null;
}

/** The tokens of an answer as another process would have reported them. */
function tokensOf(
  { choices, usage, prompt_logprobs }: ChatCompletion,
  asIds: ChatCompletion,
): GeneratedTokens {
  const scored = ({ token, logprob }: { token: string; logprob: number }) => ({
    token_id: Number(token.slice('token_id:'.length)),
    logprob,
  });
  return {
    choices: choices.map(({ token_ids, finish_reason, stop_reason, logprobs }, i) => ({
      token_ids: token_ids!,
      finish_reason: finish_reason === 'length' ? 'length' : 'stop',
      stop_reason,
      logprobs: logprobs && {
        content: asIds.choices[i]!.logprobs!.content.map((entry) => ({
          ...scored(entry),
          top_logprobs: entry.top_logprobs.map(scored),
        })),
      },
    })),
    usage,
    prompt_logprobs,
  };
}

it('are the same', { timeout: 1_200_000 }, async () => {
  const requests = [...suiteRequests(), ...reasoningRows()];
  const outcomes = { generated: 0, taken: 0, refused: 0 };
  const problems: string[] = [];
  const { runtime, isolated, client } = served;
  const services = { 'in process': runtime, 'in another process': isolated, 'over HTTP': client };
  for (const [name, given] of requests) {
    const { return_progress: _, ...request } = { ...given, return_token_ids: true };
    const direct = await runtime.createCompletion({ ...request, stream: false }).catch(() => null);
    if (!direct) {
      outcomes.refused += 1;
      continue;
    }
    const drawn = direct.seed ?? request.seed ?? null; // of the answer, if the request has none
    const seed = request.use_beam_search ? null : drawn; // beams draw nothing
    const { prompt_token_ids } = await runtime.renderPrompt(request);
    expect(prompt_token_ids).toEqual(direct.prompt_token_ids);
    const generated = await generate({ ...request, seed }, prompt_token_ids);
    const isSame = isDeepStrictEqual(
      generated?.choices.map(({ token_ids }) => token_ids),
      direct.choices.map(({ token_ids }) => token_ids),
    );
    outcomes[isSame ? 'generated' : 'taken'] += 1;
    const asIds = { ...request, seed, return_tokens_as_token_ids: true, stream: false } as const;
    const answer = isSame ? generated! : tokensOf(direct, await runtime.createCompletion(asIds));
    for (const [place, service] of Object.entries(services)) {
      const parsed = await service.parseAnswer!({ generate_response: answer, chat_request: request });
      const [found, wanted] = [stable(parsed), stable({ ...direct, seed: null })];
      if (!isDeepStrictEqual(found, wanted))
        problems.push(`${name}, ${place}: ${JSON.stringify(found)} instead of ${JSON.stringify(wanted)}`);
    }
  }
  expect(problems.slice(0, 20), `${problems.length} differ`).toEqual([]);
  process.stdout.write(`${JSON.stringify(outcomes)}\n`);
  expect(outcomes.generated).toBeGreaterThan(requests.length / 3);
  expect(outcomes.refused).toBeLessThan(0.1 * requests.length);
});
