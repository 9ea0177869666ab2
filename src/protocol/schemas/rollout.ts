/** Options of the functions that run tasks: gathering, judging, and the training loop. */
import * as s from './schema.ts';

const text = (description: string): s.Schema => s.string(description, { minLength: 1 });
const tasks: s.Schema = { description: 'The tasks to attempt.', type: 'array', minItems: 1 };
const completions: s.Schema = s.shape('Answers completions.', ['createCompletion'], {
  createCompletion: s.callback('Answers a request.'),
});

/** Lists whose element types are declared where they are used. */
const objects = { tsType: 'readonly object[]' };

const gatherProperties: Record<string, s.Schema> = {
  groupSize: s.integer('Attempts at each task.', 1, { default: 8 }),
  concurrency: s.integer('Number of concurrent attempts.', 1, { default: 64 }),
  signal: { description: 'Ends all attempts.', kind: 'AbortSignal' },
  onProgress: s.callback('Called at the start and after each attempt.'),
  maxFailures: s.integer('How many attempts may fail over all groups; one more ends them all.', 0, {
    default: 0,
  }),
  retries: s.integer('How often a failed attempt is restarted before it counts as failed.', 0, {
    default: 0,
  }),
  scoreGroup: s.callback('Scores whole groups.'),
  seed: {
    description:
      "Seed that the attempts' seeds are derived from; in `trainLoop` it determines the order of tasks, too.",
    type: ['integer', 'string'],
    default: 0,
  },
};

/** Returns the schema of a reward's arguments that precede its settings. */
function rewardArguments(
  name: string,
  needed: Readonly<Record<string, s.Schema>>,
  settings?: readonly [name: string, fields: Readonly<Record<string, s.Schema>>],
): s.Schema {
  const more = settings && { [settings[0]]: s.object('Settings.', [], settings[1]) };
  return s.shape(`Arguments of \`rewards.${name}\`.`, Object.keys(needed), { ...needed, ...more });
}

const above0 = (description: string): s.Schema => s.number(description, { exclusiveMinimum: 0 });

export const rolloutDefinitions: s.Definitions = {
  GatherOptions: s.options('Options of `gatherTrajectoryGroups`.', [], gatherProperties),
  JudgeOptions: s.options('Options of `judge`.', ['service'], {
    service: completions,
    model: text("The judge's model. Default: the service's default model."),
    rubric: text('What makes an attempt good, in words.'),
    how: s.string(
      '`answer`: the judge writes a score for each attempt, compared with the others. `decide`: its decision about each attempt is read, without generated text.',
      { enum: ['answer', 'decide'], default: 'answer' },
    ),
    request: { description: "Further fields of the judge's requests.", type: 'object' },
    retries: s.integer("How often the request is repeated if the judge's answer cannot be parsed.", 0, {
      default: 2,
    }),
  }),
  LoopEvaluation: s.object('Evaluations of `trainLoop`.', ['tasks'], {
    tasks,
    every: s.integer(
      'Steps between evaluations. One comes before the first step, and one after the last.',
      1,
      { default: 5 },
    ),
    groupSize: s.integer('Attempts at each task.', 1, { default: 1 }),
    rollout: s.callback('Attempts a task once.'),
    split: { ...text('Split of the log for its trajectories and metrics.'), default: 'val' },
  }),
  TrainLoopOptions: s.options('Options of `trainLoop`.', ['service', 'model', 'tasks', 'rollout', 'until'], {
    ...gatherProperties,
    service: s.shape('Samples, trains and stores.', ['train'], { train: s.callback('Trains.') }),
    model: text('Id of the registered model.'),
    tasks,
    rollout: s.callback('Attempts a task once.'),
    evaluate: s.ref('LoopEvaluation', 'Tasks that are not trained on.'),
    until: s.object('When to stop: at the first condition that holds.', ['steps'], {
      steps: s.integer("The model's step.", 0),
      reward: s.number('Mean reward of an evaluation.'),
      patience: s.integer('Evaluations in a row without a new best one.', 1),
    }),
    groupsPerStep: s.integer('Tasks of a step.', 1, { default: 8 }),
    refill: s.integer(
      "How many more tasks a step may try in place of tasks whose attempts all got the same reward, which teaches nothing (DAPO's dynamic sampling).",
      0,
      { default: 0 },
    ),
    sampler: {
      ...completions,
      required: ['createCompletion', 'loadAdapter'],
      properties: { ...completions.properties, loadAdapter: s.callback('Loads an adapter.') },
    },
    samplerModel: text('With a sampler: the name of the base model there.'),
    samplerPath: s.callback('The path of a folder on the sampler.'),
    maxStale: s.integer(
      'How many steps may be trained between the start of a rollout and its use. Rollouts of this many steps are sampled while others train. 0: sampling and training take turns.',
      0,
      { default: 0 },
    ),
    repetitionDetection: s.ref(
      'RepetitionDetection',
      '`repetition_detection` of the requests of a `record` that have none.',
    ),
    config: s.ref(
      'ExperimentalConfig',
      'Settings of the algorithm. With `sampler` or `maxStale`, `precalculate_logprobs` is on and `truncated_importance_sampling` is 2 by default: tokens sampled by an older step or another engine are weighted by their probability here.',
    ),
    keepCheckpoints: s.integer(
      'How many of the newest checkpoints to keep, in addition to the best one, the `kl_penalty_reference_step` and those that rollouts use. Default: all.',
      1,
    ),
    onEvent: s.callback('Called after each step and each evaluation.'),
  }),
  EnvironmentOptions: s.options(
    'Options of `environmentRollout`.',
    ['baseUrls', 'service', 'model', 'toMessage', 'toAction'],
    {
      baseUrls: s.list('Servers of the environment.', { type: 'string', minLength: 1 }, { minItems: 1 }),
      service: completions,
      model: text('Who plays. In `trainLoop` the trained model does.'),
      toReset: s.callback('The body of `/reset`.'),
      toMessage: s.callback('What the model reads.'),
      toAction: s.callback('The action of an answer.'),
      request: { description: 'Further fields of the requests.', type: 'object' },
      maxTurns: s.integer('Answers of an attempt.', 1, { default: 10 }),
      timeoutMs: s.integer('For each call of a server.', 1, { default: 30_000, maximum: 2 ** 31 - 1 }),
      fetch: s.callback('In place of the global one.'),
    },
  ),
  DistillOptions: s.options('Options of `distill`.', ['service', 'model', 'teacher', 'tasks'], {
    service: completions,
    model: text('The student: a registered model, by id or name, or what a new one starts from.'),
    teacher: s.object('The teacher.', [], {
      service: completions,
      model: text("Its model there. Default: the service's default model."),
      messages: s.list('Messages before those of a task.', s.ref('Message'), objects),
      tools: s.list('Tools, in place of those of a task.', s.ref('Tool'), objects),
    }),
    tasks: s.list(
      'Conversations whose next turn is learned.',
      s.object('A conversation.', ['messages'], {
        messages: s.list('The conversation.', s.ref('Message'), { minItems: 1, ...objects }),
        tools: s.listOrNull('Tools that the template shows.', s.ref('Tool'), {
          tsType: 'readonly object[] | null',
        }),
      }),
      { minItems: 1 },
    ),
    method: s.string(
      "`on_policy`: the student answers and learns from the teacher's log-probabilities of its tokens. `off_policy`: the teacher answers, once for each task.",
      { enum: ['on_policy', 'off_policy'], default: 'on_policy' },
    ),
    topK: s.integer(
      "Off policy: how many of the teacher's likeliest tokens are learned at each position, in addition to its own. 0: only its own.",
      0,
      { default: 0, maximum: 100 },
    ),
    steps: s.integer('Optimizer steps.', 1, { default: 50 }),
    batchSize: s.integer('Tasks of a step.', 1, { default: 8 }),
    samples: s.integer('Answers to each task.', 1, { default: 4 }),
    maxTokens: s.integer('Most tokens of an answer.', 1, { default: 256 }),
    temperature: s.number('Of the sampling.', { default: 1, exclusiveMinimum: 0 }),
    learningRate: s.number('Of AdamW.', { default: 1e-4, minimum: 0, maximum: 3e38 }),
    rank: s.integer("Of the adapter. Default: the runtime's.", 1, { maximum: 1024 }),
    seed: {
      description: 'Determines the order of tasks and the sampling.',
      type: ['integer', 'string'],
      default: 0,
    },
    signal: { description: 'Ends it.', kind: 'AbortSignal' },
    onEvent: s.callback('Called after each step.'),
  }),
  LearnDecisionsOptions: s.options('Options of `learnDecisions`.', ['service', 'model', 'examples'], {
    service: s.shape('Decides and trains: a runtime.', ['decide', 'openTraining'], {
      decide: s.callback('Answers decisions.'),
      openTraining: s.callback('Opens a training run.'),
    }),
    model: text('A registered model, by id or name, or what a new one starts from.'),
    examples: s.list('Decisions with their right answers.', s.shape('A decision.', [], {}), {
      minItems: 1,
      ...objects,
    }),
    epochs: s.integer('Most passes over the examples.', 1, { default: 10 }),
    batchSize: s.integer('Questions of an optimizer step.', 1, { default: 8 }),
    learningRate: s.number('Of AdamW.', { default: 1e-3, minimum: 0, maximum: 3e38 }),
    orders: s.integer(
      'How many orders of the options of a choice are learned: one in each epoch, rotated as in the request.',
      1,
      { default: 1, maximum: 255 },
    ),
    rank: s.integer(
      "Of the adapter. Default: that of the model's newest checkpoint, else the runtime's.",
      1,
      {
        maximum: 1024,
      },
    ),
    seed: s.integer("Determines the order of the questions and the adapter's random start.", 0, {
      default: 0,
    }),
    signal: { description: 'Ends it.', kind: 'AbortSignal' },
    onEvent: s.callback('Called after each epoch.'),
  }),
  DecidedArguments: s.shape('Arguments of `rewards.decided`.', ['service', 'instructions'], {
    service: s.shape('Decides.', ['decide'], { decide: s.callback('Answers decisions.') }),
    model: text("The judge's model. Default: the service's default model."),
    instructions: text('What is true of a good answer.'),
  }),
  ProgressArguments: s.shape('Arguments of `progressBar`.', [], {
    label: s.string('Text before the bar.'),
    output: s.shape('Where it is drawn.', ['write'], { write: s.callback('Writes a text.') }),
  }),
  ExactArguments: rewardArguments('exact', { expected: s.string('The answer.') }, [
    'options',
    { ignoreCase: s.boolean('Capitals count as small letters.') },
  ]),
  NumericArguments: rewardArguments(
    'numeric',
    { expected: s.number('The answer.', { expected: 'a finite number' }) },
    ['options', { tolerance: s.number('Largest difference.', { minimum: 0 }) }],
  ),
  MatchArguments: rewardArguments('matches', {
    expression: { description: 'What the answer has.', kind: 'RegExp' },
  }),
  FieldArguments: rewardArguments('jsonFields', {
    expected: { description: 'Fields and their values.', type: 'object' },
  }),
  TestArguments: rewardArguments(
    'passesTests',
    { tests: s.list('Expressions.', { type: 'string' }, { minItems: 1 }) },
    [
      'limits',
      {
        timeoutMs: above0('For all tests of an answer together.'),
        memoryMb: above0("Of JavaScript's heap."),
      },
    ],
  ),
  JoinArguments: rewardArguments('allOf', { rewards: s.list('Rewards.', s.callback('Scores an answer.')) }),
};
