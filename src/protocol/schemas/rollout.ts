/** Options of the functions that attempt tasks: gathering, judging, and the loop that trains. */
import { type Definitions, integer, ref, type Schema } from './schema.ts';

const callback = (description: string): Schema => ({ description, kind: 'function' });
const text = (description: string): Schema => ({ description, type: 'string', minLength: 1 });
const tasks: Schema = { description: 'What is attempted.', type: 'array', minItems: 1 };
const completions: Schema = {
  description: 'Answers completions.',
  type: 'object',
  required: ['createCompletion'],
  properties: { createCompletion: callback('Answers a request.') },
};

const gatherProperties: Record<string, Schema> = {
  groupSize: integer('Attempts at each task.', 1, { default: 8 }),
  concurrency: integer('Attempts that run at the same time.', 1, { default: 64 }),
  signal: { description: 'Ends all attempts.', kind: 'AbortSignal' },
  onProgress: callback('Called at the beginning and after each attempt.'),
  maxFailures: integer('Attempts that may fail, over all groups.', 0, { default: 0 }),
  retries: integer('How often an attempt that failed begins again.', 0, { default: 0 }),
  scoreGroup: callback('Scores whole groups.'),
  seed: { description: 'Where the seeds of attempts come from.', type: ['integer', 'string'], default: 0 },
};

/** The arguments of a reward, beside an object of settings. */
function rewardArguments(
  name: string,
  needed: Readonly<Record<string, Schema>>,
  settings?: readonly [name: string, fields: Readonly<Record<string, Schema>>],
): Schema {
  const options = settings && {
    [settings[0]]: {
      description: 'Settings.',
      type: 'object',
      properties: settings[1],
      additionalProperties: false,
    } as const,
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
  GatherOptions: {
    description: 'Options of `gatherTrajectoryGroups`.',
    title: 'options',
    type: 'object',
    properties: gatherProperties,
    additionalProperties: false,
  },
  JudgeOptions: {
    description: 'Options of `judge`.',
    title: 'options',
    type: 'object',
    required: ['service'],
    properties: {
      service: completions,
      model: text("The judge's model."),
      rubric: text('What makes an attempt good.'),
      request: { description: "Further fields of the judge's requests.", type: 'object' },
      retries: integer('How often the judge is asked again.', 0, { default: 2 }),
    },
    additionalProperties: false,
  },
  LoopEvaluation: {
    description: 'Evaluations of `trainLoop`.',
    type: 'object',
    required: ['tasks'],
    properties: {
      tasks,
      every: integer('Steps between evaluations.', 1, { default: 5 }),
      groupSize: integer('Attempts at each task.', 1, { default: 1 }),
      rollout: callback('Attempts a task once.'),
      split: { ...text('Split of the log.'), default: 'val' },
    },
    additionalProperties: false,
  },
  TrainLoopOptions: {
    description: 'Options of `trainLoop`.',
    title: 'options',
    type: 'object',
    required: ['service', 'model', 'tasks', 'rollout', 'until'],
    properties: {
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
      evaluate: { ...ref('LoopEvaluation'), description: 'Tasks that are not trained on.' },
      until: {
        description: 'When to end.',
        type: 'object',
        required: ['steps'],
        properties: {
          steps: integer("The model's step.", 0),
          reward: { description: 'Mean reward of an evaluation.', type: 'number' },
          patience: integer('Evaluations in a row without a new best one.', 1),
        },
        additionalProperties: false,
      },
      groupsPerStep: integer('Tasks of a step.', 1, { default: 8 }),
      refill: integer('Further tasks of a step.', 0, { default: 0 }),
      sampler: {
        ...completions,
        required: ['createCompletion', 'loadAdapter'],
        properties: { ...completions.properties, loadAdapter: callback('Loads an adapter.') },
      },
      samplerModel: text("The name of the sampler's base model."),
      samplerPath: callback('Where the sampler sees a folder.'),
      maxStale: integer('Steps between the beginning of a rollout and its use.', 0, { default: 0 }),
      config: { ...ref('ExperimentalConfig'), description: 'Settings of the algorithm.' },
      keepCheckpoints: integer('Newest checkpoints that are kept.', 1),
      onEvent: callback('Called after each step and each evaluation.'),
    },
    additionalProperties: false,
  },
  ProgressArguments: {
    description: 'Arguments of `progressBar`.',
    type: 'object',
    properties: {
      label: { description: 'Stands before the bar.', type: 'string' },
      output: {
        description: 'Where it is drawn.',
        type: 'object',
        required: ['write'],
        properties: { write: callback('Writes a text.') },
      },
    },
  },
  ExactArguments: rewardArguments('exact', { expected: { description: 'The answer.', type: 'string' } }, [
    'options',
    { ignoreCase: { description: 'Capitals count as small letters.', type: 'boolean' } },
  ]),
  NumericArguments: rewardArguments(
    'numeric',
    { expected: { description: 'The answer.', type: 'number', expected: 'a finite number' } },
    ['options', { tolerance: { description: 'Largest difference.', type: 'number', minimum: 0 } }],
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
      tests: {
        description: 'Expressions.',
        type: 'array',
        items: { type: 'string' },
        minItems: 1,
      },
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
    rewards: { description: 'Rewards.', type: 'array', items: callback('Scores an answer.') },
  }),
};
