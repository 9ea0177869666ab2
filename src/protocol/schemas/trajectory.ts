/** Trajectories: what a model did, and what it was worth. */
import {
  type Definitions,
  list,
  listOrNull,
  number,
  object,
  orNull,
  ref,
  type Schema,
  string,
  when,
} from './schema.ts';

const entries: Schema = list(
  'Messages as context, and completion choices, whose tokens are trained.',
  ref('MessageOrChoice'),
);

const tools: Schema = listOrNull('Tools that the template shows to the model.', ref('Tool'));

function jsonObject(description: string): Schema {
  return { description, type: ['object', 'null'], tsType: 'JsonObject | null' };
}

function tokenIds(description: string): Schema {
  return { description, type: ['array', 'null'], items: { type: 'integer', minimum: 0 } };
}

const policyVersion: Schema = { type: ['integer', 'null'], minimum: 0 };

/** Definitions of trajectories. */
export const trajectoryDefinitions: Definitions = {
  TrajectoryGroup: object(
    'Attempts at the same task. Advantages compare them with each other.',
    ['trajectories'],
    {
      trajectories: list('The attempts.', ref('Trajectory')),
      exceptions: listOrNull(
        'Attempts that failed. They train nothing, and count in `exception_rate`.',
        ref('RolloutException'),
      ),
    },
  ),
  RolloutException: object('Why an attempt failed.', ['type', 'message'], {
    type: string('Kind of the failure: a code, or the name of an error class.'),
    message: string('What happened.'),
  }),
  Trajectory: object('One attempt and its reward.', ['messages_and_choices', 'reward'], {
    messages_and_choices: entries,
    reward: number('What the attempt was worth.'),
    tools,
    additional_histories: listOrNull(
      'Further conversations of the same attempt; they share its reward and its weight.',
      ref('History'),
    ),
    initial_policy_version: { ...policyVersion, description: 'Step of the model at the first token.' },
    final_policy_version: { ...policyVersion, description: 'Step of the model at the last token.' },
    metrics: jsonObject(
      'Numbers and flags of your own, averaged over trajectories. One of a name that `onpolicy` computes replaces that; `reward` and `reward_std_dev` are refused.',
    ),
    auto_metrics: jsonObject('Numbers and flags that a harness measured, as `metrics`, which win.'),
    metadata: jsonObject('Anything worth keeping with the trajectory.'),
    logs: { description: 'Lines worth keeping with the trajectory.', type: ['array', 'null'] },
    start_time: orNull('string', 'When the attempt began.', {
      pattern: '^\\d{4}-\\d\\d-\\d\\d([Tt ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d+)?)?([Zz]|[+-]\\d\\d:?\\d\\d)?)?$',
      expected: 'a date and time as ISO 8601 writes them, or null',
      bounds: 'ISO 8601',
    }),
  }),
  History: object('One conversation of an attempt.', ['messages_and_choices'], {
    messages_and_choices: entries,
    tools,
  }),
  MessageOrChoice: {
    description: 'A message, or a choice of a response: what has a `message` is a choice.',
    type: 'object',
    ...when({ required: ['message'] }, ref('TrajectoryChoice'), ref('Message')),
    tsType: 'Message | TrajectoryChoice',
  },
  TrajectoryChoice: {
    description: 'A choice as a response holds it. Fields of other servers may stay in it.',
    required: ['message'],
    properties: {
      message: {
        description: 'What the model said.',
        type: 'object',
        required: ['role'],
        properties: {
          role: string('Who spoke.', { minLength: 1 }),
          content: { description: 'The text.', type: ['string', 'array', 'null'], items: ref('ContentPart') },
          tool_calls: listOrNull('The calls.', ref('ToolCall')),
          function_call: ref('FunctionCall', 'The call, in the older form.'),
          reasoning: orNull('string', 'The thoughts.'),
          reasoning_content: orNull('string', 'Another name of `reasoning`.'),
        },
      },
      index: orNull('integer', 'Its place in the response.'),
      finish_reason: orNull('string', 'Why it ended.'),
      logprobs: {
        description: 'Log-probabilities at the time of sampling, one per token.',
        type: ['object', 'null'],
        properties: {
          content: listOrNull('One entry per token.', {
            type: 'object',
            properties: {
              token: string('Text of the token, or `token_id:N`.'),
              logprob: orNull('number', 'Absent or null: as probable as the trained policy finds it.'),
            },
          }),
        },
      },
      token_ids: tokenIds('The sampled tokens. They are never made from the text when they are here.'),
      prompt_token_ids: tokenIds('The tokens of the prompt, when kept from the response.'),
      routed_experts: ref('RoutedExperts', 'The experts of its tokens, for `routing: "replay"`.'),
    },
  },
  RoutedExperts: object(
    'Which experts the tokens of a prompt and of its answer took.',
    ['layers', 'used', 'data'],
    {
      layers: { description: 'Layers with experts.', type: 'integer', minimum: 1 },
      used: { description: 'Experts of a token in a layer.', type: 'integer', minimum: 1 },
      data: string(
        'Numbers of experts by token, layer and place, as base64 of 16 bits each, the lower byte first; 65535: not recorded.',
      ),
    },
    { type: ['object', 'null'] },
  ),
};
