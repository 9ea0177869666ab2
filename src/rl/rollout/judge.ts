/** Attempts at one task, a rubric and a service -> the same attempts with rewards relative to each other. */
import { parseJson } from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';
import {
  type Arguments,
  type ChatCompletion,
  type ChatCompletionRequest,
  checkArguments,
  type MessageOrChoice,
  type Trajectory,
  withDefaults,
} from '../../protocol/index.ts';
import type { Completions } from '../../protocol/service/index.ts';
import type { GatheredGroup, GatherOptions } from './gather.ts';
import { wrongInput } from './wrong-input.ts';

/** Levels of decisions about attempts. */
const LEVELS = ['bad', 'poor', 'fair', 'good', 'perfect'].map((label) => ({ label }));

/** Options of {@link judge}. */
export type JudgeOptions = Omit<Arguments['JudgeOptions'], 'service' | 'request'> & {
  /** The service of the judge: a runtime, a pool, or `connect({ baseUrl })` of any server. */
  readonly service: Completions;
  /** Additional fields of the judge's requests, for example `temperature` or `max_tokens`. */
  readonly request?: Partial<ChatCompletionRequest> | undefined;
};

const RUBRIC = `An attempt that reaches its goal scores well above one that does not.
Of two attempts that reach it, the one that needs fewer steps scores slightly higher.
Progress towards the goal counts, even if it is not reached.`;

/**
 * Creates a function that scores a group, for the option `scoreGroup` of {@link gatherTrajectoryGroups}. The judge gets all attempts in one
 * request, with their common part only once. Its scores, from 0 to 1, become the rewards; the previous rewards are kept as the metric
 * `own_reward`. With `how: 'decide'` each attempt is a decision about how good it is, on a scale whose
 * mean level is the score.
 */
export function judge(options: JudgeOptions): NonNullable<GatherOptions['scoreGroup']> {
  checkArguments('JudgeOptions', options);
  const { retries, how } = withDefaults('JudgeOptions', options);
  if (how === 'decide') return decideScores(options);
  return async (group, signal) => {
    const request = judgeRequest(group.trajectories, options);
    for (let tries = 0; ; tries++) {
      const answer = await options.service.createCompletion(request, { signal });
      const scores = readScores(answer, group.trajectories.length);
      if (scores) return withScores(group, scores);
      if (tries >= retries)
        throw new OnpolicyError(
          'BACKEND_FAILED',
          `the judge gave no score from 0 to 1 for each of ${group.trajectories.length} attempts`,
        );
    }
  };
}

/** Returns the function that scores each attempt by a decision. What all attempts begin with is computed once. */
function decideScores({
  service,
  model,
  rubric = RUBRIC,
  request,
  retries,
}: JudgeOptions): NonNullable<GatherOptions['scoreGroup']> {
  for (const [name, value] of Object.entries({ request, retries }))
    if (value !== undefined) throw wrongInput([name], "no value with how: 'decide'", value);
  if (!service.decide) throw new OnpolicyError('UNSUPPORTED', 'the service of the judge has no decisions');
  const instructions = `How good is this attempt? ${rubric}`;
  const questions = [{ type: 'score', instructions, levels: LEVELS }] as const;
  return async (group, signal) => {
    const scores = group.trajectories.map(async ({ messages_and_choices }) => {
      const input = messages_and_choices.map(textOf).join('\n');
      const { answers } = await service.decide!({ model, input, questions }, { signal });
      return answers[0].score / (LEVELS.length - 1);
    });
    return withScores(group, await Promise.all(scores));
  };
}

/** Builds the request for one group's scores. */
function judgeRequest(
  attempts: readonly Trajectory[],
  { model, rubric = RUBRIC, request }: JudgeOptions,
): ChatCompletionRequest & { stream: false } {
  const texts = attempts.map(({ messages_and_choices }) => messages_and_choices.map(textOf));
  const shared = sharedLength(texts);
  const parts = [
    `Rubric:\n${rubric}`,
    ...(shared > 0 ? [`All attempts begin with:\n${texts[0]!.slice(0, shared).join('\n')}`] : []),
    ...texts.map((text, index) => `Attempt ${index + 1}:\n${text.slice(shared).join('\n')}`),
    `Score each of the ${attempts.length} attempts from 0 to 1 by the rubric, compared with the others.`,
  ];
  return {
    temperature: 0,
    ...request,
    ...(model === undefined ? {} : { model }),
    stream: false,
    messages: [
      { role: 'system', content: 'You judge attempts at the same task. You answer in JSON.' },
      { role: 'user', content: parts.join('\n\n') },
    ],
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'scores', strict: true, schema: scoresSchema(attempts.length) },
    },
  };
}

function scoresSchema(count: number): Record<string, unknown> {
  const names = Array.from({ length: count }, (_, index) => `attempt_${index + 1}`);
  const score = { type: 'number', minimum: 0, maximum: 1 };
  return {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, score])),
    required: names,
    additionalProperties: false,
  };
}

/** Returns a score per attempt. Returns null if one is missing or is not a number from 0 to 1. */
function readScores({ choices }: ChatCompletion, count: number): number[] | null {
  const given = parseJson(choices[0]?.message.content ?? '');
  if (typeof given !== 'object' || given === null) return null;
  const scores = Array.from(
    { length: count },
    (_, index) => (given as Record<string, unknown>)[`attempt_${index + 1}`],
  );
  const isScore = (score: unknown): score is number => typeof score === 'number' && score >= 0 && score <= 1;
  return scores.every(isScore) ? scores : null;
}

function withScores(group: GatheredGroup, scores: readonly number[]): GatheredGroup {
  const trajectories = group.trajectories.map((trajectory, index) => ({
    ...trajectory,
    reward: scores[index]!,
    metrics: { ...trajectory.metrics, own_reward: trajectory.reward },
  }));
  return { ...group, trajectories };
}

/** Returns the number of leading entries that all attempts have in common. */
function sharedLength([first = [], ...others]: readonly (readonly string[])[]): number {
  const differs = first.findIndex((text, index) => others.some((other) => other[index] !== text));
  return others.length === 0 ? 0 : differs < 0 ? first.length : differs;
}

/** Formats an entry for the judge. */
function textOf(entry: MessageOrChoice): string {
  const { role, content, ...rest } = 'message' in entry ? entry.message : entry;
  const { tool_calls, function_call } = rest as { tool_calls?: unknown; function_call?: unknown };
  const calls = tool_calls ?? function_call;
  const said = typeof content === 'string' ? content : content ? JSON.stringify(content) : '';
  return `${role}: ${said}${calls ? ` ${JSON.stringify(calls)}` : ''}`;
}
