/** What contradicts beam search, which draws nothing: one entry per field. */

import { fault } from '../faults.ts';
import type { ChatCompletionRequest } from '../generated/request-types.ts';
import type { ChatRule } from './rule.ts';

type Contradiction = {
  readonly field: keyof ChatCompletionRequest;
  readonly alsoReads?: readonly (keyof ChatCompletionRequest)[];
  readonly expected: string;
  readonly holds: (request: ChatCompletionRequest) => boolean;
};

const CONTRADICTIONS: readonly Contradiction[] = [
  {
    field: 'seed',
    alsoReads: ['temperature'],
    expected: 'nothing with a temperature above 0',
    holds: ({ seed, temperature }) => (temperature ?? 0) > 0 && (seed ?? -1) !== -1,
  },
  { field: 'top_p', expected: '1 or nothing', holds: ({ top_p }) => (top_p ?? 1) < 1 },
  { field: 'top_k', expected: '0, -1 or nothing', holds: ({ top_k }) => (top_k ?? 0) > 0 },
  { field: 'min_p', expected: '0 or nothing', holds: ({ min_p }) => (min_p ?? 0) > 0 },
  { field: 'typical_p', expected: '1 or nothing', holds: ({ typical_p }) => (typical_p ?? 1) < 1 },
  ...(['xtc_probability', 'dry_multiplier', 'dynatemp_range', 'mirostat'] as const).map((field) => ({
    field,
    expected: '0 or nothing',
    holds: (request: ChatCompletionRequest) => (request[field] ?? 0) > 0,
  })),
  {
    field: 'frequency_penalty',
    expected: '0 or nothing',
    holds: ({ frequency_penalty }) => (frequency_penalty ?? 0) !== 0,
  },
  {
    field: 'presence_penalty',
    expected: '0 or nothing',
    holds: ({ presence_penalty }) => (presence_penalty ?? 0) !== 0,
  },
  {
    field: 'repetition_penalty',
    expected: '1 or nothing',
    holds: ({ repetition_penalty }) => (repetition_penalty ?? 1) !== 1,
  },
  { field: 'min_tokens', expected: '0 or nothing', holds: ({ min_tokens }) => (min_tokens ?? 0) > 0 },
  {
    field: 'thinking_token_budget',
    expected: 'nothing',
    holds: ({ thinking_token_budget }) => (thinking_token_budget ?? null) !== null,
  },
  {
    field: 'reasoning',
    expected: 'no max_tokens',
    holds: ({ reasoning }) => (reasoning?.max_tokens ?? null) !== null,
  },
  {
    field: 'logits_processors',
    expected: 'nothing',
    holds: ({ logits_processors }) => (logits_processors?.length ?? 0) > 0,
  },
  {
    field: 'prompt_logprobs',
    expected: 'nothing',
    holds: ({ prompt_logprobs }) => (prompt_logprobs ?? null) !== null,
  },
  {
    field: 'kv_transfer_params',
    expected: 'nothing',
    holds: ({ kv_transfer_params }) => (kv_transfer_params ?? null) !== null,
  },
];

/** Rules about beam search. */
export const beamRules: readonly ChatRule[] = CONTRADICTIONS.map(
  ({ field, alsoReads = [], expected, holds }) => ({
    name: `beam search without ${field}`,
    reads: ['use_beam_search', field, ...alsoReads],
    check: (request) =>
      request.use_beam_search && holds(request)
        ? fault([field], 'conflict', `${expected} with use_beam_search: true`, request[field])
        : null,
  }),
);
