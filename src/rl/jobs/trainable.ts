/** A checked training request and the facts of its model -> every fault that would fail the job later, with its path. */

import type { ErrorDetail } from '../../errors.ts';
import type { ExpertFacts } from '../../models/formats/index.ts';
import { fault, type TrainingJobRequest, throwFaults, tokenIdFaults } from '../../protocol/index.ts';
import {
  acceptsTexts,
  conversationsOf,
  idsFromLogprobs,
  isChoice,
  type TrainingSettings,
  type TrajectoryChoice,
} from '../index.ts';
import { routingFaults } from './routing-faults.ts';

/** Facts about a model. */
export type TrainableModel = {
  readonly vocabSize: number;
  /** Null if it has no experts. */
  readonly experts: ExpertFacts | null;
  /** Default sampling fields for requests that omit them. */
  readonly sampling: Readonly<Record<TruncatingField, number | null>>;
  /** Steps of its checkpoints. */
  readonly steps: readonly number[];
};

/** Throws `INVALID_REQUEST` with all faults. */
export function requireTrainable(
  groups: TrainingJobRequest['trajectory_groups'],
  settings: TrainingSettings,
  { vocabSize, experts, sampling, steps }: TrainableModel,
): void {
  const { kl_penalty_reference_step: reference, kl_penalty_step_lag: lag } = settings;
  const allowed = acceptsTexts(settings);
  const faults: ErrorDetail[] = [];
  const isReplayed = settings.routing === 'replay';
  if (isReplayed && !experts)
    faults.push(
      fault(
        ['experimental_config', 'routing'],
        'unsupported',
        '"own" or null: the model has no experts',
        'replay',
      ),
    );
  if (reference !== null && reference !== 0 && !steps.includes(reference))
    faults.push(
      fault(
        ['experimental_config', 'kl_penalty_reference_step'],
        'value',
        steps.length === 0
          ? '0 or null: the model has no checkpoint'
          : `0, null or a step of the model: ${steps.slice(-20).join(', ')}`,
        reference,
      ),
    );
  const lagging = Math.max(0, (steps.at(-1) ?? 0) - (lag ?? Number.POSITIVE_INFINITY));
  if (lagging > 0 && !steps.includes(lagging))
    faults.push(
      fault(
        ['experimental_config', 'kl_penalty_step_lag'],
        'value',
        `the distance of the newest step, ${steps.at(-1)}, to a step of the model: ${steps.slice(-20).join(', ')}`,
        lag,
      ),
    );
  for (const [g, { trajectories }] of groups.entries())
    for (const [t, { metrics }] of trajectories.entries())
      for (const name of Object.keys(settings.reward_weights ?? {}))
        if (!['number', 'boolean'].includes(typeof metrics?.[name])) {
          const loc = ['trajectory_groups', String(g), 'trajectories', String(t), 'metrics', name];
          faults.push(fault(loc, 'missing', 'a number, as reward_weights names it', metrics?.[name]));
        }
  for (const [g, { trajectories }] of groups.entries())
    for (const [t, trajectory] of trajectories.entries())
      for (const [c, { entries }] of conversationsOf(trajectory).entries()) {
        const history = c === 0 ? [] : ['additional_histories', String(c - 1)];
        const loc = ['trajectory_groups', String(g), 'trajectories', String(t), ...history];
        for (const [i, entry] of entries.entries()) {
          if (!isChoice(entry)) continue;
          const at = [...loc, 'messages_and_choices', String(i)];
          for (const found of choiceFaults(entry, at, allowed, vocabSize)) faults.push(found);
          if (settings.truncated_sampling === 'refuse')
            for (const found of truncationFaults(entry, at, sampling)) faults.push(found);
          if (isReplayed && experts) faults.push(...routingFaults(entry, at, allowed, experts));
        }
      }
  throwFaults(faults);
}

/** Fields of a request that make some tokens impossible -> a test if a value does so. */
const TRUNCATES = {
  top_p: (value) => value < 1,
  top_k: (value) => value > 0,
  min_p: (value) => value > 0,
} as const satisfies Record<string, (value: number) => boolean>;

type TruncatingField = keyof typeof TRUNCATES;

function truncationFaults(
  { sampling_params: said }: TrajectoryChoice,
  loc: readonly string[],
  usual: TrainableModel['sampling'],
): readonly ErrorDetail[] {
  return Object.entries(TRUNCATES).flatMap(([name, truncates]) => {
    const field = name as TruncatingField;
    const value = said?.[field] ?? usual[field];
    if (value === null || !truncates(value)) return [];
    const expected = `a value that excludes no token, in the request or the model's file, or "accept" as \`truncated_sampling\``;
    return [fault([...loc, 'sampling_params', field], 'value', expected, value)];
  });
}

function choiceFaults(
  { token_ids, prompt_token_ids, logprobs }: TrajectoryChoice,
  loc: readonly string[],
  allowed: boolean,
  vocabSize: number,
): readonly ErrorDetail[] {
  const content = logprobs?.content ?? null;
  const unless = 'or `allow_training_without_logprobs`';
  if (!content && !allowed) {
    const expected = `log-probabilities, which completions with "logprobs": true have, ${unless}`;
    return [fault([...loc, 'logprobs'], 'missing', expected, logprobs)];
  }
  const named = token_ids ? null : idsFromLogprobs(content);
  if (!token_ids && !named && !allowed) {
    const expected = `token ids, which completions with "return_token_ids": true have, ${unless}`;
    return [fault([...loc, 'token_ids'], 'missing', expected, token_ids)];
  }
  if (token_ids && content && token_ids.length < content.length) {
    const expected = `at most the ${token_ids.length} entries of token_ids`;
    return [fault([...loc, 'logprobs', 'content'], 'conflict', expected, content)];
  }
  return [
    ...tokenIdFaults([...loc, 'token_ids'], token_ids ?? [], vocabSize),
    ...tokenIdFaults([...loc, 'prompt_token_ids'], prompt_token_ids ?? [], vocabSize),
    ...tokenIdFaults([...loc, 'logprobs', 'content'], named ?? [], vocabSize),
  ];
}
