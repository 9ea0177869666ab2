/** Arguments of the functions of `onpolicy/rl`: advantages, losses, rows and trainers. */
import * as s from './schema.ts';
import { FLOAT_MAX, trainingJobDefinitions } from './training-job.ts';

const settings = trainingJobDefinitions['ExperimentalConfig']!.properties!;

/** Returns the schema of a column of a packed row. The addon checks its length and bounds against the model. */
function column(kind: NonNullable<s.Schema['kind']>, description: string): s.Schema {
  return { description, kind };
}

/** Returns the schema of numbers per token, in any kind of list. The function that reads them checks them. */
function perToken(description: string): s.Schema {
  return { description, tsType: 'ArrayLike<number | null>' };
}

const optionalPerToken = (description: string): s.Schema => ({
  description,
  tsType: 'ArrayLike<number | null> | null',
});

const model: s.Schema = s.string('Path of the GGUF file.', { minLength: 1 });
const threads = s.integer(
  'Maximum number of CPU threads: fewer run while other programs use cores. Default: one per core, without efficiency cores.',
  1,
  { maximum: 512 },
);
const contextSize = s.integer(
  "With LongRoPE: cells that one sequence of the sampling engine may use, `stats().kvTokens` if sequences share them. If these exceed the model's original context, the engine uses the factors for long texts, and so does the trainer. Default: those for short texts.",
  1,
  { maximum: 2 ** 31 - 1 },
);
const path: s.Schema = s.string('Where it is written or read.', { minLength: 1 });
const tokens = column('Int32Array', '(sequence)');
const unit: s.Schema = { description: 'Sequences of one unit are in one row.', type: 'integer' };
const share = (description: string): s.Schema => s.number(description, { minimum: 0, maximum: 1 });
const fromZero = (description: string): s.Schema => s.number(description, { minimum: 0, maximum: FLOAT_MAX });

/** An entry with a `message` is a choice, any other is a message. Messages may have extra fields for their template. */
const entry: s.Schema = {
  type: 'object',
  ...s.when({ required: ['message'] }, s.ref('TrajectoryChoice'), {
    required: ['role'],
    properties: { role: s.string('Who spoke.') },
  }),
};
const entries: s.Schema = s.list('Messages and choices.', entry);
const tools: s.Schema = { description: 'Tools that the template shows.', type: ['array', 'null'] };

/** Options of the trained adapter, also used by a runtime. */
const adapterProperties = {
  rank: s.integer('Inner size of the adapter.', 1, { default: 8, maximum: 1024 }),
  alpha: s.number("The adapter's output is scaled by alpha / rank.", {
    default: 16,
    exclusiveMinimum: 0,
    maximum: 1e30,
  }),
  rslora: s.flag(
    false,
    "Whether the scale is alpha / sqrt(rank), as PEFT's `use_rslora`: large ranks then learn as fast as small ones (https://arxiv.org/abs/2312.03732).",
  ),
  modules: s.list(
    'Which linear layers are trained, by kind (`attn_q`) or full name (`blk.0.attn_q`). Default: all kinds but those of experts (`ffn_gate_exps`, `ffn_up_exps`, `ffn_down_exps`, `ffn_gate_up_exps`), whose adapters have factors for each expert.',
    { type: 'string', minLength: 1 },
    { minItems: 1 },
  ),
  memoryBudget: s.integer(
    'Bytes that training may take in addition to the weights; activations that do not fit are computed twice. Default: 2 GiB of activations are kept. A row that still does not fit is refused before training starts.',
    1,
    { maximum: 2 ** 50 },
  ),
} satisfies Record<string, s.Schema>;

export const rlDefinitions: s.Definitions = {
  ScoredTrajectory: s.shape(
    'What one trajectory brings: its reward, and how many of its tokens are trained on.',
    ['reward', 'trainable_tokens'],
    {
      reward: s.number('Reward of the attempt.'),
      trainable_tokens: { description: 'Tokens that are trained on.', type: 'integer', minimum: 0 },
      metrics: { description: 'Rewards by name, for `rewardWeights`.', type: ['object', 'null'] },
    },
  ),
  AdvantageOptions: s.objectOrNull('Settings of `computeAdvantages`. Null stands for the default.', {
    estimator: {
      ...settings['advantage_estimator'],
      description:
        'What a reward is compared with: the mean of its group, the mean of the others of its group (RLOO, arXiv:2402.14740), the mean of the batch (REINFORCE++, arXiv:2501.03262), the mean of its group, in units of that mean (MaxRL, arXiv:2602.02710), or nothing: it is the advantage, undivided.',
    },
    rewardWeights: settings['reward_weights']!,
    scaleRewards: settings['scale_rewards']!,
    advantageBalance: settings['advantage_balance']!,
    normalize: settings['normalize_advantages']!,
  }),
  AgentTrajectory: s.shape('An attempt of one of several agents.', ['agent', 'reward'], {
    agent: s.string('Name of the agent.', { minLength: 1 }),
    reward: s.number('Its reward.'),
  }),
  AgentBaselineOptions: s.options('Settings of `AgentBaselines`.', [], {
    decay: s.number('What a baseline keeps of itself with each reward.', {
      default: 0.95,
      minimum: 0,
      maximum: 1,
    }),
    baselines: {
      description:
        'Baselines to begin with, by agent, as `values()` of an earlier run returned them. Default: 0.',
      type: 'object',
      additionalProperties: { type: 'number' },
      tsType: 'Readonly<Record<string, number>>',
    },
  }),
  AgentBaselineArguments: s.shape('Arguments of `AgentBaselines`.', ['trajectories'], {
    trajectories: s.list('In the order of their ends.', s.ref('AgentTrajectory')),
  }),
  HierarchyArguments: s.shape('Arguments of `hierarchicalGroups`.', ['episodes', 'episodeAgents'], {
    episodes: s.list('(episodes)(trajectories of the episode)', {
      type: 'array',
      items: s.ref('AgentTrajectory'),
    }),
    episodeAgents: s.list('Agents that are compared within an episode only.', {
      type: 'string',
      minLength: 1,
    }),
  }),
  AdvantageArguments: s.shape('Arguments of `computeAdvantages`.', ['groups'], {
    groups: s.list('(groups)(trajectories of the group)', {
      type: 'array',
      items: s.ref('ScoredTrajectory'),
    }),
    options: s.ref('AdvantageOptions', 'Settings.'),
  }),
  PolicyLossInputs: s.object(
    'One packed row, aligned per token; every column has the same length. Null or NaN: unknown.',
    ['new_logprobs', 'old_logprobs', 'advantages', 'weights', 'mask', 'sequence_ids'],
    {
      new_logprobs: perToken('Under the weights being trained.'),
      old_logprobs: perToken('Under the weights that sampled. Unknown: taken as equal to the new one.'),
      ref_logprobs: optionalPerToken(
        'Under the reference weights; needed with `kl_penalty_coef` and `kl_loss_coef`.',
      ),
      original_logprobs: optionalPerToken(
        'What the sampler reported, when `old_logprobs` were recomputed by the trainer; needed with `sampler_correction`.',
      ),
      advantages: perToken('How much better than expected.'),
      weights: perToken('What a token counts.'),
      mask: perToken('1 = trained on. What else a token has counts only then.'),
      sequence_ids: perToken('Which sequence a token belongs to.'),
      entropies: optionalPerToken(
        "Entropy of each token's distribution, for the metric; needed with `top_entropy_quantile` and `entropy_advantage_coef`.",
      ),
    },
    { title: 'inputs' },
  ),
  PolicyLossRows: s.shape('Arguments of `policyLosses`.', ['rows'], {
    rows: s.list('Packed rows.', s.ref('PolicyLossInputs')),
  }),
  PreferenceLossInputs: {
    description: 'One packed row, aligned per token. More columns may be there.',
    title: 'inputs',
    type: 'object',
    required: ['new_logprobs', 'ref_logprobs', 'advantages', 'mask', 'sequence_ids'],
    properties: {
      new_logprobs: perToken('Under the weights being trained.'),
      ref_logprobs: perToken('Under the reference weights.'),
      advantages: perToken('Above 0: of a preferred answer; else of a rejected one.'),
      mask: perToken('1 = trained on.'),
      sequence_ids: perToken('`dpo`: which pair of answers a token belongs to. `kto`: which answer.'),
      entropies: optionalPerToken("Entropy of each token's distribution, for the metric."),
    },
  },
  PackedRow: {
    description:
      "One packed row of tokens. Token i sees itself and each earlier token j with the same group id, or whose group id is i's parent id. So branches share a prefix: they name its group as their parent.",
    title: 'row',
    type: 'object',
    required: ['tokens', 'positions', 'groupIds', 'parentIds', 'logitRows', 'targetTokens'],
    properties: {
      tokens: column('Int32Array', '(row)'),
      positions: column('Int32Array', "(row) place within the token's own sequence"),
      groupIds: column('Int32Array', '(row)'),
      parentIds: column('Int32Array', '(row)'),
      logitRows: column('Int32Array', '(targets) index of the token whose output predicts the target'),
      targetTokens: column('Int32Array', '(targets)'),
      temperatures: column(
        'Float32Array',
        '(targets) what logits are divided by: log-probabilities, entropies and gradients are of that distribution. Absent: 1',
      ),
      routedExperts: column(
        'Int32Array',
        '(row, layers with experts, experts of a token) which experts a token takes, or -1 for all of a token and layer: those that the router chooses. Absent: it chooses for all.',
      ),
    },
  },
  RowLengthArguments: s.shape('Arguments of `defaultRowLength`.', ['sequences', 'contextSize'], {
    sequences: s.list('What is packed.', {
      type: 'object',
      required: ['tokens'],
      properties: { tokens, unit },
    }),
    contextSize: { description: 'Of the model; 0: unknown.', type: 'integer', minimum: 0 },
  }),
  PackArguments: s.shape('Arguments of `packRows`.', ['sequences', 'rowLength'], {
    sequences: s.list('What is packed.', {
      type: 'object',
      required: ['tokens', 'isTrained', 'logprobs', 'group', 'advantage', 'weight'],
      properties: {
        tokens,
        isTrained: column('Uint8Array', '(sequence)'),
        logprobs: column('Float64Array', '(sequence) of trained tokens when they were sampled; NaN: unknown'),
        group: { description: 'Sequences of one group may share a prompt.', type: 'integer' },
        advantage: s.number('Of its trained tokens.'),
        weight: s.number('Of its trained tokens.'),
        unit,
        temperatures: column('Float32Array', '(sequence) at which trained tokens were sampled; absent: 1'),
        observationWeights: column('Float64Array', '(sequence) 0 for tokens that are no observation'),
        experts: s.object(
          'Experts that its tokens take.',
          ['width', 'ids'],
          {
            width: { description: 'Of a token in all its layers.', type: 'integer', minimum: 1 },
            ids: column('Int32Array', '(sequence, width)'),
          },
          { type: ['object', 'null'] },
        ),
      },
    }),
    rowLength: { ...settings['packed_sequence_length'], type: 'integer' },
  }),
  TokenArguments: s.shape('Arguments of `trajectoryTokens`.', ['trajectory', 'tokenizer', 'options'], {
    trajectory: s.shape('One attempt.', ['messages_and_choices'], {
      messages_and_choices: entries,
      tools,
      additional_histories: s.listOrNull('Further conversations.', {
        type: 'object',
        required: ['messages_and_choices'],
        properties: { messages_and_choices: entries, tools },
      }),
    }),
    tokenizer: s.shape('Turns messages into ids.', ['prompt', 'conversation', 'isEnd'], {
      prompt: s.callback('Ids up to the next turn.'),
      conversation: s.callback('Ids of all turns.'),
      isEnd: s.callback('Whether a token ends a turn.'),
    }),
    options: s.object('Settings.', ['allowWithoutLogprobs'], {
      allowWithoutLogprobs: s.boolean('Accepts choices without ids.'),
      replaysExperts: s.boolean('Tokens take the experts of `routed_experts`.'),
      temperature: s.number('Of choices that do not say theirs. Default 1.', {
        exclusiveMinimum: 0,
        maximum: FLOAT_MAX,
      }),
      observationWeights: settings['observation_weights']!,
    }),
  }),
  TrainerOptions: s.options('Options of `openTrainer`.', ['model'], {
    model,
    ...adapterProperties,
    gpu: {
      description: "Default: the device that the engine's libraries were opened for.",
      ...s.ref('Gpu'),
    },
    threads,
    contextSize,
    arithmetic: s.oneOf(
      '`exact` multiplies in 32-bit floats with dequantized weights, which take 4 bytes each. `engine`: matmuls as the engine computes them, so that log-probabilities agree with it; these round activations, too.',
      ['engine', 'exact'],
      { default: 'engine' },
    ),
    seed: s.integer("Seed of the adapter's random start.", Number.MIN_SAFE_INTEGER, { default: 0 }),
  }),
  TrainingOptions: s.object(
    'What is trained of a model, and how much memory that may take. A model with a checkpoint continues with its rank, scale and modules; another one given here is an error.',
    [],
    {
      ...adapterProperties,
      trajectoryBytes: s.integer(
        "Bytes of trajectories that training keeps in a model's run, as the split `train`: about this many of the newest. 0 keeps none.",
        0,
        { default: 2 ** 28 },
      ),
    },
  ),
  FullTrainerOptions: s.options('Options of `openFullTrainer`.', ['model'], {
    model: { ...model, description: 'Path of a GGUF file whose weights are F32, F16 or BF16.' },
    threads,
    contextSize,
    arithmetic: s.oneOf(
      '`exact` multiplies in 32-bit floats, `fast` in BF16 with 32-bit sums. The weights are 32-bit floats either way.',
      ['exact', 'fast'],
      { default: 'exact' },
    ),
  }),
  ForwardOptions: s.options('Options of `forward` of a trainer.', [], {
    gradients: s.flag(true, 'Whether `backward` may follow; without, the pass is cheaper.'),
    adapterOff: s.flag(false, 'Uses the frozen weights alone.'),
  }),
  StepOptions: s.options('Settings of one optimizer step (AdamW).', ['learningRate'], {
    learningRate: fromZero('Size of the step.'),
    beta1: share('Default 0.9.'),
    beta2: share('Default 0.99 for an adapter, 0.95 for all weights.'),
    eps: fromZero('Default 1e-8.'),
    weightDecay: fromZero('Default 0.1.'),
    maxGradNorm: fromZero(
      'The gradient is scaled down to this norm; 0: never. Default 0.1 for an adapter, 1 for all weights.',
    ),
  }),
  AdapterSource: {
    description: 'Weights by module, or a file or folder of an adapter.',
    title: 'source',
    type: ['string', 'object'],
    minLength: 1,
    additionalProperties: {
      type: 'object',
      required: ['a', 'b'],
      properties: { a: column('Float32Array', '(rank, in)'), b: column('Float32Array', '(out, rank)') },
    },
    tsType: 'string | object',
  },
  LogprobGradient: { ...column('Float32Array', '(targets)'), title: 'gradLogprobs' },
  TargetWeights: { ...column('Float32Array', '(targets)'), title: 'targetWeights' },
  TensorWeights: {
    description: 'Numbers by the name of the tensor.',
    title: 'weights',
    type: 'object',
    additionalProperties: column('Float32Array', '(out, in)'),
  },
  TensorName: s.string('As in the file.', { title: 'name' }),
  TrainerFolder: { ...path, title: 'folder' },
  TrainerFile: { ...path, title: 'file' },
};
