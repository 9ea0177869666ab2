/** Requests of random workloads -> what an engine over the checking backend answers, and what it should. */
import { expect } from 'vitest';
import { BeamRun } from '../../src/answer/beams.ts';
import type { StopRules } from '../../src/answer/text-out.ts';
import type { Listener } from '../../src/engine/delivery.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { type Group, Sequence } from '../../src/engine/sequence.ts';
import { Speculation } from '../../src/engine/speculation.ts';
import type { OnpolicyError } from '../../src/errors.ts';
import { BeamSearch, type Hypothesis, stepsOf } from '../../src/sampling/beam-search.ts';
import { LogitsHook } from '../../src/sampling/logits-hook.ts';
import { PromptScores } from '../../src/sampling/prompt-scores.ts';
import { byteTokenizer } from './byte-tokenizer.ts';
import { FakeDrafter } from './fake-drafter.ts';
import { fakeSampler, scoreRow } from './fake-sampler.ts';
import { bestIds, hashLogits, predictedCandidates, predictedToken } from './hash-model.ts';

/** Vocabulary size of the checking backend that runs the requests. */
export const VOCAB_SIZE = 50;

/** A request of a random workload. */
export type Request = {
  readonly prompt: number[];
  readonly n: number;
  readonly outputTokens: number;
  readonly salt: string;
  /** 0 to 2. */
  readonly adapter: number;
  readonly priority: number;
  readonly background: boolean;
  /** Tokens after which the first choice is taken out, or null. */
  readonly abortAfter: number | null;
  /** True if the prompt is scored. */
  readonly scores: boolean;
  /** True if a hook turns every predicted token into the next one. */
  readonly hooked: boolean;
  /** True if the answers are those of a beam search with n beams. */
  readonly beams: boolean;
  /** How many tokens are forced after a sampled one, at most: as many as the sampled one modulo this and one. */
  readonly forced: number;
  /** How many of eight drafts are right; null: nothing is drafted. */
  readonly drafts: number | null;
  /** Steps of the event loop before it is submitted. */
  readonly delay: number;
};

/** A request with nothing special about it. */
export const simple = (more: Partial<Request> = {}): Request => ({
  prompt: [1, 2, 3, 4],
  n: 1,
  outputTokens: 4,
  salt: '',
  adapter: 0,
  priority: 0,
  background: false,
  abortAfter: null,
  scores: false,
  hooked: false,
  beams: false,
  forced: 0,
  drafts: null,
  delay: 0,
  ...more,
});

/** Waits for so many turns of the event loop. */
export async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Runs a request and resolves with the sampled tokens of every choice; null for one that was taken out. */
export async function run(
  engine: Engine,
  request: Request,
  arrival: number,
  checkpoints: readonly number[] = [],
): Promise<(number[] | null)[]> {
  await turns(request.delay);
  const group: Group = {
    prompt: Int32Array.from(request.prompt),
    cacheKey: `${request.adapter} ${request.salt}`,
    adapter: request.adapter,
    priority: request.priority,
    background: request.background,
    arrival,
    checkpoints,
  };
  if (request.beams) return await searchBeams(engine, request, group);
  const scores = request.scores ? new PromptScores(group.prompt, 1) : null;
  const answers = await Promise.all(
    Array.from(
      { length: request.n },
      (_, index) =>
        new Promise<number[] | null>((resolve, reject) => {
          const tokens: number[] = [];
          const sequence = new Sequence(
            group,
            index,
            fakeSampler({ forced: request.hooked ? 0 : request.forced }),
            {
              promptScores: index === 0 ? scores : null,
              hook: request.hooked ? new LogitsHook([takeNext], group.prompt, VOCAB_SIZE) : null,
              speculation: request.hooked ? null : speculate(request),
              maxOutputs: request.outputTokens,
            },
          );
          const listener: Listener = {
            onToken(token) {
              tokens.push(token);
              if (index === 0 && request.abortAfter !== null && tokens.length >= request.abortAfter) {
                if (tokens.length > request.abortAfter) return false; // forced after it
                setImmediate(() => {
                  engine.remove(sequence);
                  resolve(null);
                });
                return false;
              }
              if (tokens.length >= request.outputTokens) resolve(tokens);
              return tokens.length >= request.outputTokens;
            },
            onComplete: () => reject(new Error('nothing is constrained here')),
            onError: (error: OnpolicyError) => reject(error),
          };
          engine.submit(sequence, listener);
        }),
    ),
  );
  if (scores && answers[0]) expectScores(request, scores);
  return answers;
}

/** Drafts what the fake predicts, right or wrong in turn. */
function speculate({ drafts, adapter }: Request): Speculation | null {
  if (drafts === null) return null;
  let made = 0;
  const drafter = FakeDrafter.handle(
    (tokens) => predictedToken(tokens, VOCAB_SIZE, adapter),
    () => (made++ * 5) % 8 < drafts,
  );
  return new Speculation({ drafter, maxTokens: 6, trust: 0.9 });
}

/** Each token of the prompt has the fake's score, and beside it the prediction. */
function expectScores({ prompt, adapter }: Request, scores: PromptScores): void {
  const entries = scores.entries(byteTokenizer);
  expect(entries[0]).toBeNull();
  expect(entries.length).toBe(prompt.length);
  for (const [at, token] of prompt.entries()) {
    if (at === 0) continue;
    const { logprob, rank, top } = scoreRow(hashLogits(prompt.slice(0, at), VOCAB_SIZE, adapter), token, 1);
    const [[predicted, best]] = top as [[number, number]];
    expect(entries[at]).toEqual({
      [token]: expect.objectContaining({ logprob: Math.fround(logprob), rank }),
      [predicted]: expect.objectContaining({ logprob: Math.fround(best), rank: 1 }),
    });
  }
}

const BEAM_RULES: StopRules = {
  stops: null,
  stopIds: new Set([3]),
  endIds: new Set(),
  eosId: -1,
  ignoreEos: false,
  minTokens: 0,
  maxTokens: 0,
  includeStop: false,
  skipSpecial: true,
  shownSpecials: new Set(),
  spacesBetween: true,
};

/** Runs a request as a beam search; it is taken out after `abortAfter` turns of the event loop. */
async function searchBeams(engine: Engine, request: Request, group: Group): Promise<(number[] | null)[]> {
  return await new Promise((resolve, reject) => {
    const run = new BeamRun({
      engine,
      group,
      tokenizer: byteTokenizer,
      sampler: fakeSampler({ candidates: 2 * request.n }),
      forkSampler: () => fakeSampler({ candidates: 2 * request.n }),
      rules: { ...BEAM_RULES, maxTokens: request.outputTokens },
      matcher: null,
      width: request.n,
      lengthPenalty: 1,
      onEnd: (result) => (result instanceof Error ? reject(result) : resolve(result.map(tokensOf))),
    });
    if (request.abortAfter !== null)
      void (async () => {
        await turns(request.abortAfter!);
        run.stop();
        resolve([null]);
      })();
  });
}

function tokensOf({ path }: Hypothesis): number[] {
  return stepsOf(path).map(({ token }) => token);
}

/** The same search on the fake's predictions, without an engine. */
export function expectedBeams({ prompt, n, outputTokens, adapter }: Request, vocabSize: number): number[][] {
  const search = new BeamSearch({
    width: n,
    promptTokens: prompt.length,
    maxTokens: outputTokens,
    lengthPenalty: 1,
    endIds: BEAM_RULES.stopIds,
    eosId: -1,
    endsText: () => false,
  });
  while (!search.isDone)
    search.step(
      search.live.map((path) => {
        const tokens = [...prompt, ...stepsOf(path).map(({ token }) => token)];
        return predictedCandidates(tokens, vocabSize, 2 * n, adapter);
      }),
    );
  return search.results().map(tokensOf);
}

/** Allows only the token behind the best one, in place or in a copy. */
function takeNext(outputIds: Int32Array, logits: Float32Array): Float32Array | undefined {
  const next = (bestIds(logits, 1)[0]! + 1) % logits.length;
  const row = outputIds.length % 2 === 0 ? logits : new Float32Array(logits.length);
  row.fill(-Infinity)[next] = 1;
  return row === logits ? undefined : row;
}

export function expected(request: Request, vocabSize: number): number[] {
  const tokens = [...request.prompt];
  for (let i = 0; i < request.outputTokens; i++)
    tokens.push((predictedToken(tokens, vocabSize, request.adapter) + (request.hooked ? 1 : 0)) % vocabSize);
  return tokens.slice(request.prompt.length);
}
