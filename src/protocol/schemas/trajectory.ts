/** Trajectories: what a model did, and what it was worth. */
import { type Definitions, ref, type Schema } from './schema.ts';

const entries: Schema = {
  description: 'Messages as context, and completion choices, whose tokens are trained.',
  type: 'array',
  items: ref('MessageOrChoice'),
};

const tools: Schema = {
  description: 'Tools that the template shows to the model.',
  type: ['array', 'null'],
  items: ref('Tool'),
};

function jsonObject(description: string): Schema {
  return { description, type: ['object', 'null'], tsType: 'JsonObject | null' };
}

function tokenIds(description: string): Schema {
  return { description, type: ['array', 'null'], items: { type: 'integer', minimum: 0 } };
}

const policyVersion: Schema = { type: ['integer', 'null'], minimum: 0 };

/** Definitions of trajectories. */
export const trajectoryDefinitions: Definitions = {
  TrajectoryGroup: {
    description: 'Attempts at the same task. Advantages compare them with each other.',
    type: 'object',
    required: ['trajectories'],
    properties: {
      trajectories: { description: 'The attempts.', type: 'array', items: ref('Trajectory') },
      exceptions: {
        description: 'Attempts that failed. They train nothing, and count in `exception_rate`.',
        type: ['array', 'null'],
        items: ref('RolloutException'),
      },
    },
    additionalProperties: false,
  },
  RolloutException: {
    description: 'Why an attempt failed.',
    type: 'object',
    required: ['type', 'message'],
    properties: {
      type: { description: 'Kind of the failure: a code, or the name of an error class.', type: 'string' },
      message: { description: 'What happened.', type: 'string' },
    },
    additionalProperties: false,
  },
  Trajectory: {
    description: 'One attempt and its reward.',
    type: 'object',
    required: ['messages_and_choices', 'reward'],
    properties: {
      messages_and_choices: entries,
      reward: { description: 'What the attempt was worth.', type: 'number' },
      tools,
      additional_histories: {
        description: 'Further conversations of the same attempt; they share its reward and its weight.',
        type: ['array', 'null'],
        items: ref('History'),
      },
      initial_policy_version: { ...policyVersion, description: 'Step of the model at the first token.' },
      final_policy_version: { ...policyVersion, description: 'Step of the model at the last token.' },
      metrics: jsonObject(
        'Numbers and flags of your own, averaged over trajectories. One of a name that `onpolicy` computes replaces that; `reward` and `reward_std_dev` are refused.',
      ),
      auto_metrics: jsonObject('Numbers and flags that a harness measured, as `metrics`, which win.'),
      metadata: jsonObject('Anything worth keeping with the trajectory.'),
      logs: { description: 'Lines worth keeping with the trajectory.', type: ['array', 'null'] },
      start_time: {
        description: 'When the attempt began.',
        type: ['string', 'null'],
        pattern: '^\\d{4}-\\d\\d-\\d\\d([Tt ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d+)?)?([Zz]|[+-]\\d\\d:?\\d\\d)?)?$',
        expected: 'a date and time as ISO 8601 writes them, or null',
        bounds: 'ISO 8601',
      },
    },
    additionalProperties: false,
  },
  History: {
    description: 'One conversation of an attempt.',
    type: 'object',
    required: ['messages_and_choices'],
    properties: { messages_and_choices: entries, tools },
    additionalProperties: false,
  },
  MessageOrChoice: {
    description: 'A message, or a choice of a response: what has a `message` is a choice.',
    type: 'object',
    if: { required: ['message'] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: ref('TrajectoryChoice'),
    else: ref('Message'),
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
          role: { description: 'Who spoke.', type: 'string', minLength: 1 },
          content: { description: 'The text.', type: ['string', 'array', 'null'], items: ref('ContentPart') },
          tool_calls: { description: 'The calls.', type: ['array', 'null'], items: ref('ToolCall') },
          function_call: { ...ref('FunctionCall'), description: 'The call, in the older form.' },
          reasoning: { description: 'The thoughts.', type: ['string', 'null'] },
          reasoning_content: { description: 'Another name of `reasoning`.', type: ['string', 'null'] },
        },
      },
      index: { description: 'Its place in the response.', type: ['integer', 'null'] },
      finish_reason: { description: 'Why it ended.', type: ['string', 'null'] },
      logprobs: {
        description: 'Log-probabilities at the time of sampling, one per token.',
        type: ['object', 'null'],
        properties: {
          content: {
            description: 'One entry per token.',
            type: ['array', 'null'],
            items: {
              type: 'object',
              properties: {
                token: { description: 'Text of the token, or `token_id:N`.', type: 'string' },
                logprob: {
                  description: 'Absent or null: as probable as the trained policy finds it.',
                  type: ['number', 'null'],
                },
              },
            },
          },
        },
      },
      token_ids: tokenIds('The sampled tokens. They are never made from the text when they are here.'),
      prompt_token_ids: tokenIds('The tokens of the prompt, when kept from the response.'),
    },
  },
};
