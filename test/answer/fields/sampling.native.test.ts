/** The sampling fields' effect on the distribution: processed log-probabilities against the formulas, on the embedded model. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SamplerPlanOptions } from '../../../src/engine/native/sampler.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { llamaDistribution, ReferenceDry } from '../../fakes/llama-samplers.ts';
import { logSoftmax } from '../../fakes/reference-sampler.ts';
import { STORY } from '../asking.ts';
import { ask, type Fields } from './model.ts';

const VOCABULARY = 1024;
const FLOOR = -9999;

let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1, logprobsMode: 'processed' });
});
afterAll(() => runtime.close());

/** Edits logits: `counts` are those of the generated tokens, `seen` also holds the prompt, `tokens` are both in order. */
type Edit = (
  logits: number[],
  counts: ReadonlyMap<number, number>,
  seen: ReadonlySet<number>,
  tokens: readonly number[],
) => number[];

const byValue = (logits: readonly number[]): number[] => [...logits].sort((a, b) => b - a);
const keep = (logits: number[], isKept: (logit: number, id: number) => boolean): number[] =>
  logits.map((logit, id) => (isKept(logit, id) ? logit : Number.NEGATIVE_INFINITY));

function nucleus(logits: number[], share: number): number[] {
  let above = 0;
  const kept = new Set<number>();
  const logprobs = logSoftmax(logits);
  for (const id of [...logits.keys()].sort((a, b) => logits[b]! - logits[a]!)) {
    if (above < share) kept.add(id);
    above += Math.exp(logprobs[id]!);
  }
  return keep(logits, (_, id) => kept.has(id));
}

const inLlamaOrder =
  (plan: Omit<SamplerPlanOptions, 'vocabSize'>): Edit =>
  (logits) =>
    llamaDistribution({ ...plan, vocabSize: VOCABULARY }, logits, 0).map(Math.log);

const CASES: readonly (readonly [string, Fields, Edit])[] = [
  ['temperature 0.5', { temperature: 0.5 }, (logits) => logits.map((logit) => logit / 0.5)],
  ['temperature 0.001 is used as given', { temperature: 0.001 }, (logits) => logits.map((v) => v / 0.001)],
  ['top_k 7', { top_k: 7 }, (logits) => keep(logits, (logit) => logit >= byValue(logits)[6]!)],
  ['top_k 0', { top_k: 0 }, (logits) => logits],
  ['top_k -1', { top_k: -1 }, (logits) => logits],
  ['top_k beyond the vocabulary', { top_k: 5000 }, (logits) => logits],
  ['top_p 0.7', { top_p: 0.7 }, (logits) => nucleus(logits, 0.7)],
  [
    'min_p 0.05',
    { min_p: 0.05 },
    (logits) => keep(logits, (logit) => Math.exp(logit - Math.max(...logits)) >= 0.05),
  ],
  [
    'frequency_penalty 1.5',
    { frequency_penalty: 1.5 },
    (logits, counts) => logits.map((logit, id) => logit - 1.5 * (counts.get(id) ?? 0)),
  ],
  [
    'presence_penalty -1.5',
    { presence_penalty: -1.5 },
    (logits, counts) => logits.map((logit, id) => logit + (counts.has(id) ? 1.5 : 0)),
  ],
  [
    'repetition_penalty 1.7 counts the prompt too',
    { repetition_penalty: 1.7 },
    (logits, _, seen) =>
      logits.map((logit, id) => (seen.has(id) ? (logit > 0 ? logit / 1.7 : logit * 1.7) : logit)),
  ],
  ['typical_p 0.4', { typical_p: 0.4 }, inLlamaOrder({ typical_p: 0.4 })],
  [
    'typical_p, xtc and dynatemp, with the temperature last',
    {
      temperature: 0.8,
      top_k: 50,
      typical_p: 0.95,
      top_p: 0.9,
      min_p: 0.01,
      xtc_probability: 1,
      xtc_threshold: 0.05,
      dynatemp_range: 0.4,
      dynatemp_exponent: 2,
    },
    inLlamaOrder({
      temperature: 0.8,
      top_k: 50,
      typical_p: 0.95,
      top_p: 0.9,
      min_p: 0.01,
      xtc_probability: 1,
      xtc_threshold: 0.05,
      dynatemp_range: 0.4,
      dynatemp_exponent: 2,
    }),
  ],
  [
    'top_n_sigma 1.2 over all tokens, before top_k',
    { top_n_sigma: 1.2, top_k: 40 },
    inLlamaOrder({ top_n_sigma: 1.2, top_k: 40 }),
  ],
  [
    'adaptive_target 0.3 at the first token',
    { adaptive_target: 0.3, temperature: 0.9, top_k: 30, max_tokens: 1 },
    inLlamaOrder({ adaptive_target: 0.3, temperature: 0.9, top_k: 30 }),
  ],
  [
    'dry_multiplier 2 after the other penalties, over prompt and output',
    {
      presence_penalty: 0.5,
      dry_multiplier: 2,
      dry_base: 1.5,
      dry_allowed_length: 1,
      dry_penalty_last_n: 40,
      dry_sequence_breakers: [],
    },
    (logits, counts, _, tokens) =>
      new ReferenceDry(
        { dry_multiplier: 2, dry_base: 1.5, dry_allowed_length: 1, dry_penalty_last_n: 40 },
        tokens,
      ).penalised(logits.map((logit, id) => logit - (counts.has(id) ? 0.5 : 0))),
  ],
  [
    'allowed_token_ids',
    { allowed_token_ids: [300, 301, 302] },
    (logits) => keep(logits, (_, id) => id >= 300 && id <= 302),
  ],
  [
    'logit_bias',
    { logit_bias: { 300: 4, 301: -3 } },
    (logits) => logits.map((v, id) => v + (id === 300 ? 4 : id === 301 ? -3 : 0)),
  ],
  [
    'logit_bias is clamped to 100',
    { logit_bias: { 300: 1e6 } },
    (logits) => logits.map((v, id) => v + (id === 300 ? 100 : 0)),
  ],
  [
    'penalties come after the bias, temperature after them, then min_p, top_k and top_p',
    { logit_bias: { 300: 4 }, presence_penalty: 1, temperature: 1.3, min_p: 0.001, top_k: 20, top_p: 0.9 },
    (logits, counts) => {
      const hot = logits.map((v, id) => (v + (id === 300 ? 4 : 0) - (counts.has(id) ? 1 : 0)) / 1.3);
      const likely = keep(hot, (logit) => Math.exp(logit - Math.max(...hot)) >= 0.001);
      return nucleus(
        keep(likely, (logit) => logit >= byValue(likely)[19]!),
        0.9,
      );
    },
  ],
];

describe('the distribution under', () => {
  it.each(CASES)('%s', async (_, fields, edit) => {
    const common = { max_tokens: 6, logprobs: true, top_logprobs: -1, return_tokens_as_token_ids: true };
    const request = { temperature: 1, seed: 11, ...common, return_token_ids: true };
    const answer = await ask(runtime, STORY, { ...request, ...fields });
    const ids = answer.choices[0]!.token_ids!;
    const seen = new Set(answer.prompt_token_ids);
    const tokens = [...answer.prompt_token_ids!];
    const counts = new Map<number, number>();
    const plain = await plainRows(ids);
    for (const [at, { top_logprobs }] of answer.choices[0]!.logprobs!.content.entries()) {
      const expected = logSoftmax(edit(plain[at]!, counts, seen, tokens));
      expect(top_logprobs).toHaveLength(VOCABULARY);
      for (const { token, logprob } of top_logprobs) {
        const exact = Math.max(expected[Number(token.slice('token_id:'.length))]!, FLOOR);
        if (Math.abs(logprob - exact) > 1e-3 * Math.max(1, Math.abs(exact)))
          throw new Error(`position ${at}, ${token}: ${logprob}, expected ${exact}`);
      }
      tokens.push(ids[at]!);
      counts.set(ids[at]!, (counts.get(ids[at]!) ?? 0) + 1);
      seen.add(ids[at]!);
    }
  });

  /** The model's own logits, but for a constant, along these tokens. */
  async function plainRows(ids: readonly number[]): Promise<number[][]> {
    const rows: number[][] = [];
    await ask(runtime, STORY, {
      max_tokens: ids.length,
      logits_processors: [
        (output: Int32Array, logits: Float32Array) => {
          rows.push(Array.from(logits));
          logits.fill(Number.NEGATIVE_INFINITY)[ids[output.length]!] = 0;
        },
      ],
      ignore_eos: true,
    });
    return rows;
  }

  it('bad_words: a word that began in the prompt is not one', async () => {
    const banned = await ask(runtime, 'What is the capital of France?', { bad_words: ['The capital'] });
    expect(banned.choices[0]!.message.content).not.toMatch(/^The capital/);
    const messages = [
      { role: 'user' as const, content: 'What is the capital of France?' },
      { role: 'assistant' as const, content: 'The' },
    ];
    const open = await runtime.createCompletion({
      messages,
      temperature: 0,
      continue_final_message: true,
      bad_words: ['The capital'],
      stream: false,
    });
    expect(open.choices[0]!.message.content).toBe(' capital of France is Paris.');
  });
});
