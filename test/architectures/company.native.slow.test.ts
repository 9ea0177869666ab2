/**
 * Random requests to models with recurrent state, some at once, under default options -> the answers that each request has alone.
 * ONPOLICY_REQUESTS=1500: so many of each model. ONPOLICY_ARCHITECTURES: names of others, or `all`.
 */
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { StepCosts } from '../../src/engine/step-costs.ts';
import {
  createRuntime,
  type Runtime,
  type TextCompletion,
  type TextCompletionRequest,
} from '../../src/index.ts';
import { testing } from '../addon/testing-addon.ts';
import { randomNumbers } from '../fakes/random-numbers.ts';
import { architectureFiles } from './files.ts';

const COUNT = Number(process.env['ONPOLICY_REQUESTS'] ?? 150);
const AT_ONCE = [3, 8, 16, Infinity];
const hasKernels = testing.matmulKernels().length > 0;

/** Name -> true if answers are bit-identical in any batch. False if an operation of the model depends on the other tokens of a batch. */
const MODELS: Record<string, boolean> = {
  qwen35: true,
  qwen35moe: true,
  qwen3next: true,
  lfm2: true,
  lfm2moe: true,
  granitehybrid: true,
  'falcon-h1': true,
  mamba2: true,
  nemotron_h: false,
  nemotron_h_moe: false,
  'kimi-linear': false,
  bailingmoe3: false,
  'kimi-k3': false,
  'minimax-01': false,
  jamba: false,
  mamba: false,
  rwkv6: false,
  rwkv7: false,
};
const asked = process.env['ONPOLICY_ARCHITECTURES'];
const names = asked === undefined || asked === 'all' ? Object.keys(MODELS) : asked.split(',');
/** Models that the engine can take back by some tokens, so that drafts are checked. */
const DRAFTING = [
  'qwen35',
  'qwen35moe',
  'lfm2',
  'lfm2moe',
  'nemotron_h',
  'nemotron_h_moe',
  'bailingmoe3',
  'kimi-k3',
];

const hasBits = (name: string): boolean => hasKernels && MODELS[name] !== false;
/** Rounding moves log-probabilities of 32-bit weights so little that no token changes. */
const TOLERANCE = 2e-3;

let files: Record<string, string>;
beforeAll(() => {
  const exact = names.filter(hasBits);
  const others = names.filter((name) => !hasBits(name));
  files = {
    ...(exact.length > 0 ? architectureFiles(exact, 'q8_0') : {}),
    ...(others.length > 0 ? architectureFiles(others) : {}),
  };
}, 240_000);

/** Drafts are checked whatever a busy machine does: steps of any size are thought to take as long. */
vi.spyOn(StepCosts.prototype, 'record').mockImplementation(() => {});
afterAll(() => {
  vi.restoreAllMocks();
});

type Request = TextCompletionRequest & { stream?: false };

function drawRequests(seed: number): Request[] {
  const next = randomNumbers(seed);
  const below = (count: number): number => Math.floor(next() * count);
  const one = <T>(...choices: readonly T[]): T => choices[below(choices.length)]!;
  const often = (share: number, fields: () => Partial<Request>): Partial<Request> =>
    next() < share ? fields() : {};
  const tokens = (count: number): number[] => Array.from({ length: count }, () => 97 + below(26));
  const prefixes = Array.from({ length: 8 }, () => tokens(5 + below(120)));
  return Array.from({ length: COUNT }, (_, seed) => {
    const repeated = tokens(1 + below(6));
    const prompt = [
      ...one(...prefixes),
      ...Array.from({ length: below(5) }, () => repeated).flat(),
      ...tokens(1 + below(12)),
    ];
    return {
      prompt,
      seed,
      max_tokens: 2 + below(40),
      temperature: one(0, 0, 0.7, 1.2),
      ignore_eos: true,
      logprobs: one(0, 2),
      return_token_ids: true,
      // Answers of few different tokens repeat themselves, so that drafts are right.
      ...often(0.5, () => ({ allowed_token_ids: tokens(one(2, 3, 8)) })),
      ...often(0.7, () => ({ speculation: { method: one('ngram', 'suffix'), minMatch: 1 } })),
      ...often(0.15, () => ({ n: one(2, 3), temperature: 1 })),
      ...often(0.15, () => ({ repetition_penalty: 1.1 })),
      ...often(0.15, () => ({ stop_token_ids: tokens(3) })),
      ...often(0.1, () => ({ prompt_logprobs: 0 })),
      ...often(0.1, () => ({ cache_salt: one('a', 'b') })),
      ...often(0.1, () => ({
        allowed_token_ids: undefined,
        structured_outputs: { regex: '(abcab){2,9}[a-c]+' },
      })),
    } as Request;
  });
}

type Choice = { readonly ids: readonly number[]; readonly logprobs: readonly number[] };

const choicesOf = ({ choices }: TextCompletion): Choice[] =>
  choices.map(({ token_ids: ids, logprobs }) => ({
    ids: ids!,
    logprobs: logprobs!.token_logprobs as number[],
  }));

/** The answers to all requests, so many of them at once; each time some others leave before they are answered. */
async function answersTo(
  runtime: Runtime,
  requests: readonly Request[],
  atOnce: number,
): Promise<Choice[][]> {
  const answers: Choice[][] = [];
  let next = 0;
  const ask = async (): Promise<void> => {
    while (next < requests.length) {
      const i = next++;
      if (atOnce > 1 && i % 10 === 9) {
        const leaving = new AbortController();
        setTimeout(() => leaving.abort(), 5);
        await runtime.createTextCompletion(requests[i - 1]!, { signal: leaving.signal }).catch(() => {});
      }
      answers[i] = choicesOf(await runtime.createTextCompletion(requests[i]!));
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, requests.length) }, ask));
  return answers;
}

it.each(names)(
  '%s: each request has the answer that it has alone',
  { timeout: 60_000 + 1000 * COUNT },
  async (name) => {
    const requests = drawRequests(names.indexOf(name) + 1);
    const options = { model: files[name]!, gpu: false, contextSize: 512 } as const;
    let alone: Choice[][];
    {
      await using runtime = await createRuntime({
        ...options,
        maxSequences: 1,
        speculation: false,
        prefixCache: false,
      });
      alone = await answersTo(
        runtime,
        requests.map((request) => ({ ...request, speculation: false })),
        1,
      );
    }
    for (const atOnce of AT_ONCE) {
      await using runtime = await createRuntime(options);
      const answers = await answersTo(runtime, requests, atOnce);
      const differing = answers.flatMap((choices, i) =>
        choices.flatMap((choice, index) => {
          const wanted = alone[i]![index]!;
          const at = wanted.ids.findIndex((id, place) => id !== choice.ids[place]);
          const error = Math.max(
            ...wanted.logprobs
              .slice(0, at < 0 ? undefined : at)
              .map((value, k) => Math.abs(value - choice.logprobs[k]!)),
          );
          const isSame = at < 0 && (hasBits(name) ? error === 0 : error < TOLERANCE);
          return isSame ? [] : [{ request: i, index, at, error, isDrawn: requests[i]!.temperature !== 0 }];
        }),
      );
      // Without equal bits, rounding may move a random number over the boundary between two tokens: rarely, and behind equal ones.
      const isBoundary = ({ at, error, isDrawn }: (typeof differing)[number]): boolean =>
        !hasBits(name) && isDrawn && at >= 0 && error < TOLERANCE;
      const boundaries = differing.filter(isBoundary);
      expect(boundaries.length).toBeLessThanOrEqual(Math.ceil(COUNT / 150));
      expect(
        differing.filter((one) => !isBoundary(one)),
        `${atOnce} at once`,
      ).toEqual([]);
      const { off } = runtime.stats().engine!;
      expect(off.filter(({ assumption }) => assumption === 'statePlaces')).toEqual([]);
      if (!DRAFTING.includes(name)) continue;
      const { draftedTokens, acceptedTokens } = runtime.stats();
      expect(acceptedTokens).toBeGreaterThan(COUNT / 2);
      expect(draftedTokens).toBeGreaterThan(acceptedTokens);
    }
  },
);
