/** Options of the functions that attempt tasks: gathering, judging, and the loop that trains. */
import {
  boolean,
  type Definitions,
  integer,
  list,
  number,
  object,
  ref,
  type Schema,
  string,
} from './schema.ts';

const callback = (description: string): Schema => ({ description, kind: 'function' });
const text = (description: string): Schema => ({ description, type: 'string', minLength: 1 });
const tasks: Schema = { description: 'What is attempted.', type: 'array', minItems: 1 };
const completions: Schema = {
  description: 'Answers completions.',
  type: 'object',
  required: ['createCompletion'],
  properties: { createCompletion: callback('Answers a request.') },
};

/** Lists whose types are written where they are used. */
const objects = { tsType: 'readonly object[]' };

const gatherProperties: Record<string, Schema> = {
  groupSize: integer('Attempts at each task.', 1, { default: 8 }),
  concurrency: integer('Number of concurrent attempts.', 1, { default: 64 }),
  signal: { description: 'Ends all attempts.', kind: 'AbortSignal' },
  onProgress: callback('Called at the start and after each attempt.'),
  maxFailures: integer('How many attempts may fail over all groups; one more ends them all.', 0, {
    default: 0,
  }),
  retries: integer('How often a failed attempt is restarted before it counts as failed.', 0, { default: 0 }),
  scoreGroup: callback('Scores whole groups.'),
  seed: {
    description:
      "Seed that the attempts' seeds are derived from; in `trainLoop` it determines the order of tasks, too.",
    type: ['integer', 'string'],
    default: 0,
  },
};

/** The arguments of a reward, beside an object of settings. */
function rewardArguments(
  name: string,
  needed: Readonly<Record<string, Schema>>,
  settings?: readonly [name: string, fields: Readonly<Record<string, Schema>>],
): Schema {
  const options = settings && {
    [settings[0]]: object('Settings.', [], settings[1]),
  };
  return {
    description: `Arguments of \`rewards.${name}\`.`,
    type: 'object',
    required: Object.keys(needed),
    properties: { ...needed, ...options },
  };
}

const above0 = (description: string): Schema => ({ description, type: 'number', exclusiveMinimum: 0 });

/** Definitions of these options. */
export const rolloutDefinitions: Definitions = {
  GatherOptions: object('Options of `gatherTrajectoryGroups`.', [], gatherProperties, { title: 'options' }),
  JudgeOptions: object(
    'Options of `judge`.',
    ['service'],
    {
      service: completions,
      model: text("The judge's model. Default: the service's default model."),
      rubric: text('What makes an attempt good, in words.'),
      request: { description: "Further fields of the judge's requests.", type: 'object' },
      retries: integer("How often the request is repeated if the judge's answer cannot be parsed.", 0, {
        default: 2,
      }),
    },
    { title: 'options' },
  ),
  LoopEvaluation: object('Evaluations of `trainLoop`.', ['tasks'], {
    tasks,
    every: integer('Steps between evaluations. One comes before the first step, and one after the last.', 1, {
      default: 5,
    }),
    groupSize: integer('Attempts at each task.', 1, { default: 1 }),
    rollout: callback('Attempts a task once.'),
    split: { ...text('Split of the log for its trajectories and metrics.'), default: 'val' },
  }),
  TrainLoopOptions: object(
    'Options of `trainLoop`.',
    ['service', 'model', 'tasks', 'rollout', 'until'],
    {
      ...gatherProperties,
      service: {
        description: 'Samples, trains and keeps.',
        type: 'object',
        required: ['train'],
        properties: { train: callback('Trains.') },
      },
      model: text('Id of the registered model.'),
      tasks,
      rollout: callback('Attempts a task once.'),
      evaluate: ref('LoopEvaluation', 'Tasks that are not trained on.'),
      until: object('When to stop: at the first condition that holds.', ['steps'], {
        steps: integer("The model's step.", 0),
        reward: number('Mean reward of an evaluation.'),
        patience: integer('Evaluations in a row without a new best one.', 1),
      }),
      groupsPerStep: integer('Tasks of a step.', 1, { default: 8 }),
      refill: integer(
        "How many more tasks a step may try in place of tasks whose attempts all got the same reward, which teaches nothing (DAPO's dynamic sampling).",
        0,
        { default: 0 },
      ),
      sampler: {
        ...completions,
        required: ['createCompletion', 'loadAdapter'],
        properties: { ...completions.properties, loadAdapter: callback('Loads an adapter.') },
      },
      samplerModel: text('With a sampler: the name of the base model there.'),
      samplerPath: callback('Where the sampler sees a folder.'),
      maxStale: integer(
        'How many steps may be trained between the start of a rollout and its use. Rollouts of this many steps are sampled while others train. 0: sampling and training take turns.',
        0,
        { default: 0 },
      ),
      config: ref(
        'ExperimentalConfig',
        'Settings of the algorithm. With `sampler` or `maxStale`, `precalculate_logprobs` is on and `truncated_importance_sampling` is 2 by default: tokens sampled by an older step or another engine are weighted by their probability here.',
      ),
      keepCheckpoints: integer(
        'How many of the newest checkpoints to keep, in addition to the best one, the `kl_penalty_reference_step` and those that rollouts use. Default: all.',
        1,
      ),
      onEvent: callback('Called after each step and each evaluation.'),
    },
    { title: 'options' },
  ),
  EnvironmentOptions: object(
    'Options of `environmentRollout`.',
    ['baseUrls', 'service', 'model', 'toMessage', 'toAction'],
    {
      baseUrls: list('Servers of the environment.', { type: 'string', minLength: 1 }, { minItems: 1 }),
      service: completions,
      model: text('Who plays. In `trainLoop` the trained model does.'),
      toReset: callback('The body of `/reset`.'),
      toMessage: callback('What the model reads.'),
      toAction: callback('The action of an answer.'),
      request: { description: 'Further fields of the requests.', type: 'object' },
      maxTurns: integer('Answers of an attempt.', 1, { default: 10 }),
      timeoutMs: integer('For each call of a server.', 1, { default: 30_000, maximum: 2 ** 31 - 1 }),
      fetch: callback('In place of the global one.'),
    },
    { title: 'options' },
  ),
  DistillOptions: object(
    'Options of `distill`.',
    ['service', 'model', 'teacher', 'tasks'],
    {
      service: completions,
      model: text('The student: a registered model, by id or name, or what a new one starts from.'),
      teacher: object('Who is learned from.', [], {
        service: completions,
        model: text("Its model there. Default: the service's default model."),
        messages: list('Messages that stand before those of a task.', ref('Message'), objects),
        tools: list('Tools, in place of those of a task.', ref('Tool'), objects),
      }),
      tasks: list(
        'Conversations whose next turn is learned.',
        object('A conversation.', ['messages'], {
          messages: list('The conversation.', ref('Message'), { minItems: 1, ...objects }),
          tools: {
            description: 'Tools that the template shows.',
            type: ['array', 'null'],
            items: ref('Tool'),
            tsType: 'readonly object[] | null',
          },
        }),
        { minItems: 1 },
      ),
      method: string(
        '`on_policy`: the student answers and learns from what the teacher finds of its tokens. `off_policy`: the teacher answers, once for each task.',
        { enum: ['on_policy', 'off_policy'], default: 'on_policy' },
      ),
      topK: integer(
        'Off policy: how many of the likeliest tokens of the teacher are learned at each place, beside its own. 0: its own alone.',
        0,
        { default: 0, maximum: 100 },
      ),
      steps: integer('Optimizer steps.', 1, { default: 50 }),
      batchSize: integer('Tasks of a step.', 1, { default: 8 }),
      samples: integer('Answers to each task.', 1, { default: 4 }),
      maxTokens: integer('Most tokens of an answer.', 1, { default: 256 }),
      temperature: number('Of the sampling.', { default: 1, exclusiveMinimum: 0 }),
      learningRate: number('Of AdamW.', { default: 1e-4, minimum: 0, maximum: 3e38 }),
      rank: integer('Of the adapter. Default: as the runtime trains.', 1, { maximum: 1024 }),
      seed: {
        description: 'Determines the order of tasks and the sampling.',
        type: ['integer', 'string'],
        default: 0,
      },
      signal: { description: 'Ends it.', kind: 'AbortSignal' },
      onEvent: callback('Called after each step.'),
    },
    { title: 'options' },
  ),
  ProgressArguments: {
    description: 'Arguments of `progressBar`.',
    type: 'object',
    properties: {
      label: string('Stands before the bar.'),
      output: {
        description: 'Where it is drawn.',
        type: 'object',
        required: ['write'],
        properties: { write: callback('Writes a text.') },
      },
    },
  },
  ExactArguments: rewardArguments('exact', { expected: string('The answer.') }, [
    'options',
    { ignoreCase: boolean('Capitals count as small letters.') },
  ]),
  NumericArguments: rewardArguments(
    'numeric',
    { expected: number('The answer.', { expected: 'a finite number' }) },
    ['options', { tolerance: number('Largest difference.', { minimum: 0 }) }],
  ),
  MatchArguments: rewardArguments('matches', {
    expression: { description: 'What the answer has.', kind: 'RegExp' },
  }),
  FieldArguments: rewardArguments('jsonFields', {
    expected: { description: 'Fields and their values.', type: 'object' },
  }),
  TestArguments: rewardArguments(
    'passesTests',
    {
      tests: list('Expressions.', { type: 'string' }, { minItems: 1 }),
    },
    [
      'limits',
      {
        timeoutMs: above0('For all tests of an answer together.'),
        memoryMb: above0("Of JavaScript's heap."),
      },
    ],
  ),
  JoinArguments: rewardArguments('allOf', {
    rewards: list('Rewards.', callback('Scores an answer.')),
  }),
};
