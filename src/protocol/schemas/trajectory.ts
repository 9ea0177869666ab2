/** Trajectories: messages and choices of a rollout, with a reward. */
import { sampling } from './sampling.ts';
import * as s from './schema.ts';

const entries: s.Schema = s.list(
  'Messages as context, and completion choices, whose tokens are trained.',
  s.ref('MessageOrChoice'),
);

const tools: s.Schema = s.listOrNull('Tools that the template shows to the model.', s.ref('Tool'));

function tokenIds(description: string): s.Schema {
  return s.listOrNull(description, { type: 'integer', minimum: 0 });
}

/** The logarithm of 1, plus a margin for servers that round. */
export const LARGEST_LOGPROB = 1e-3;

// Patterns of a valid calendar date and a time of day.
const LEAP_YEAR = '(\\d\\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)';
const DAY = '(0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|02-(0[1-9]|1\\d|2[0-8])';
const DATE = `\\d{4}-(${DAY})|${LEAP_YEAR}-02-29`;
const HOUR = '([01]\\d|2[0-3])';
const TIME = `${HOUR}:[0-5]\\d(:([0-5]\\d|60)(\\.\\d+)?)?`;

const policyVersion: s.Schema = { type: ['integer', 'null'], minimum: 0 };

/** Fields of a request that change the sampled distribution. */
const samplingParams = Object.fromEntries(
  (['temperature', 'top_p', 'top_k', 'min_p'] as const).map((name) => [name, sampling[name]!]),
);

export const trajectoryDefinitions: s.Definitions = {
  TrajectoryGroup: s.object(
    'Attempts at the same task. Advantages compare them with each other.',
    ['trajectories'],
    {
      trajectories: s.list('The attempts.', s.ref('Trajectory')),
      exceptions: s.listOrNull(
        'Attempts that failed. They are not trained on, but count in `exception_rate`.',
        s.ref('RolloutException'),
      ),
    },
  ),
  RolloutException: s.object('Why an attempt failed.', ['type', 'message'], {
    type: s.string('Kind of the failure: a code, or the name of an error class.'),
    message: s.string('What happened.'),
  }),
  Trajectory: s.object('One attempt and its reward.', ['messages_and_choices', 'reward'], {
    messages_and_choices: entries,
    reward: s.number('Reward of the attempt.'),
    tools,
    additional_histories: s.listOrNull(
      'Further conversations of the same attempt; they share its reward and its weight.',
      s.ref('History'),
    ),
    initial_policy_version: { ...policyVersion, description: 'Step of the model at the first token.' },
    final_policy_version: {
      ...policyVersion,
      description: 'Step of the model at the last token, at which its metrics are filed.',
    },
    metrics: s.jsonObject(
      'Numbers and flags of your own, averaged over trajectories. They replace metrics of the same name that `onpolicy` computes; `reward` and `reward_std_dev` are refused.',
    ),
    auto_metrics: s.jsonObject('Numbers and flags that a harness measured. `metrics` take precedence.'),
    metadata: s.jsonObject('Anything worth keeping with the trajectory.'),
    logs: { description: 'Lines worth keeping with the trajectory.', type: ['array', 'null'] },
    start_time: s.stringOrNull('When the attempt began.', {
      pattern: `^(${DATE})([Tt ]${TIME}([Zz]|[+-]${HOUR}:?[0-5]\\d)?)?$`,
      expected: 'a date and time as ISO 8601 writes them, or null',
      bounds: 'ISO 8601',
    }),
  }),
  History: s.object('One conversation of an attempt.', ['messages_and_choices'], {
    messages_and_choices: entries,
    tools,
  }),
  MessageOrChoice: {
    description: 'A message, or a choice of a response: what has a `message` is a choice.',
    type: 'object',
    ...s.when({ required: ['message'] }, s.ref('TrajectoryChoice'), s.ref('Message')),
    tsType: 'Message | TrajectoryChoice',
  },
  TrajectoryChoice: {
    description: 'A choice as a response holds it. Fields of other servers may stay in it.',
    required: ['message'],
    properties: {
      message: s.shape('What the model said.', ['role'], {
        role: s.string('Who spoke.', { minLength: 1 }),
        content: { description: 'The text.', type: ['string', 'array', 'null'], items: s.ref('ContentPart') },
        tool_calls: s.listOrNull('The calls.', s.ref('ToolCall')),
        function_call: s.ref('FunctionCall', 'The call, in the older form.'),
        reasoning: s.stringOrNull('The reasoning.'),
        reasoning_content: s.stringOrNull('Another name of `reasoning`.'),
      }),
      index: s.integerOrNull('Its place in the response.'),
      finish_reason: s.stringOrNull('Why it ended.'),
      logprobs: {
        description: 'Log-probabilities at the time of sampling, one per token.',
        type: ['object', 'null'],
        properties: {
          content: s.listOrNull('One entry per token.', {
            type: 'object',
            properties: {
              token: s.string('Text of the token, or `token_id:N`.'),
              logprob: s.numberOrNull('Absent or null: as probable as the trained policy finds it.', {
                maximum: LARGEST_LOGPROB,
              }),
            },
          }),
        },
      },
      token_ids: tokenIds('The sampled tokens. With these, the text is never tokenized.'),
      prompt_token_ids: tokenIds('The tokens of the prompt, when kept from the response.'),
      routed_experts: s.ref('RoutedExperts', 'The experts of its tokens, for `routing: "replay"`.'),
      sampling_params: {
        ...s.shape(
          'How its tokens were sampled, as its request said. Recorders fill it in.',
          [],
          samplingParams,
        ),
        type: ['object', 'null'],
      },
    },
  },
  RoutedExperts: s.object(
    'Which experts the tokens of a prompt and of its answer took.',
    ['layers', 'used', 'data'],
    {
      layers: { description: 'Layers with experts.', type: 'integer', minimum: 1 },
      used: { description: 'Experts of a token in a layer.', type: 'integer', minimum: 1 },
      data: s.string(
        'Numbers of experts by token, layer and place, as base64 of 16 bits each, the lower byte first; 65535: not recorded.',
      ),
    },
    { type: ['object', 'null'] },
  ),
};
