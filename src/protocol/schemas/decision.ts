/** Decisions: typed questions about an input, in OpenAI's shape. */
import { chatFields } from './chat-completion.ts';
import * as s from './schema.ts';

/** Maximum number of questions in a request, options of a choice and levels of a score, as in OpenAI's service. */
export const MOST_QUESTIONS = 400;
export const MOST_CHOICES = 255;
const MOST_LEVELS = 10;

const noEffect = s.acceptedFrom('OpenAI');

const positive = (description: string): s.Schema =>
  s.numberOrNull(description, { exclusiveMinimum: 0, maximum: 1e6 });

function question(
  type: string,
  description: string,
  required: readonly string[],
  more: NonNullable<s.Schema['properties']>,
): s.Schema {
  return s.variant(type, 'question', description, ['instructions', ...required], {
    name: s.stringOrNull('Its name, which its answer has too. In a map of questions the key is the name.', {
      minLength: 1,
    }),
    instructions: {
      description: 'What is asked: a text, or a list of parts.',
      type: ['string', 'array'],
      minLength: 1,
      minItems: 1,
      items: s.ref('DecisionPart'),
    },
    ...more,
  });
}

/** Text, or JSON data that the model reads as compact JSON text. */
const entry = (description: string): s.Schema => ({
  description,
  type: ['string', 'object', 'array', 'null'],
  additionalProperties: true,
  tsType: 'string | object | null',
});

const described = { type: ['string', 'object', 'array', 'null'], additionalProperties: true } as const;
const pictures = (description: string): s.Schema =>
  s.listOrNull(description, { type: 'string', minLength: 1 }, { bounds: 'data URLs or Base64' });

function systemOne(
  type: string,
  description: string,
  required: readonly string[],
  criteria: s.Schema,
): s.Schema {
  return s.variant(type, 'question', description, required, {
    instructions: entry('What is asked. May be absent where the criteria say it.'),
    criteria,
  });
}

const description = s.stringOrNull('What it means, in words.');

export const decisionDefinitions: s.Definitions = {
  DecisionRequest: s.object(
    'Questions about one input, each answered by the probabilities of its values.',
    ['input', 'questions'],
    {
      ...chatFields('model'),
      input: {
        description: 'What the questions are about: a text of the user, or items of a conversation.',
        type: ['string', 'array'],
        minItems: 1,
        items: s.ref('DecisionInputItem'),
      },
      questions: {
        description: 'The questions: a list, or a map from names. The answers have the same form.',
        type: ['array', 'object'],
        items: s.ref('DecisionQuestion'),
        additionalProperties: s.ref('DecisionQuestion'),
        bounds: `1 to ${MOST_QUESTIONS}; names are not empty, and each is there once`,
        tsType: 'readonly DecisionQuestion[] | { readonly [name: string]: DecisionQuestion }',
      },
      orders: s.integerOrNull(
        'Prompts of each choice, in which its options stand in rotated orders; the probabilities are their mean.',
        { default: 1, minimum: 1, maximum: MOST_CHOICES, bounds: 'at most the options of each choice' },
      ),
      temperature: {
        description:
          'Divides the logits of the options before their softmax: one number, or one for each kind of question. Absent or null: the one that was fitted for the model, else 1.',
        type: ['number', 'object', 'null'],
        exclusiveMinimum: 0,
        maximum: 1e6,
        properties: {
          predicate: positive('Of predicates.'),
          choice: positive('Of choices.'),
          score: positive('Of scores.'),
        },
        additionalProperties: false,
        expected: 'a number > 0 and <= 1000000, an object with numbers for kinds of questions, or null',
      },
      read: s.oneOf(
        'What is read: the probabilities of labels of one token, or with `text` those of the whole texts of the options and of the end behind them. The prompt then lists no options.',
        ['labels', 'text', null],
        { default: 'labels' },
      ),
      return_token_ids: s.flagOrNull(
        false,
        'Returns the token ids of the prompt and of the labels with each answer.',
      ),
      truncate_prompt_tokens: s.integerOrNull(
        'Most tokens of a prompt; -1: as many as the context holds. The end of the input is cut, the questions are not.',
        { minimum: -1 },
      ),
      ...chatFields('adapters', 'cache_salt', 'priority', 'timeout_ms', 'keep_alive'),
      stream: s.oneOf('Not supported: only false or null.', [false, null]),
      ...s.accepted('OpenAI', 'safety_identifier', 'prompt_cache_key', 'prompt_cache_options'),
    },
  ),
  SystemOneRequest: s.object(
    "Questions about a state, in the form of TypeSafe's System One.",
    ['state', 'questions'],
    {
      ...chatFields('model'),
      state: entry('What the questions are about: a text, JSON data, or null.'),
      questions: {
        description: 'The questions by their names.',
        type: 'object',
        additionalProperties: s.ref('SystemOneQuestion'),
        bounds: `1 to ${MOST_QUESTIONS}`,
        tsType: '{ readonly [name: string]: SystemOneQuestion }',
      },
      images: pictures('Pictures that belong to the state.'),
      files: pictures('The same.'),
      ...chatFields('cache_salt', 'priority', 'timeout_ms', 'keep_alive'),
    },
  ),
  SystemOneQuestion: s.kinds('A question.', {
    noul: 'SystemOneNoul',
    choice: 'SystemOneChoice',
    score: 'SystemOneScore',
  }),
  SystemOneNoul: systemOne('noul', 'Asks whether something is true.', [], {
    description: 'When it is true, and when it is not.',
    type: ['object', 'null'],
    properties: { true: entry('When it is true.'), false: entry('When it is not.') },
    additionalProperties: false,
  }),
  SystemOneChoice: systemOne('choice', 'Asks for one of several labels.', ['criteria'], {
    description: 'Labels, and what they mean; null: the label says it.',
    type: 'object',
    additionalProperties: described,
    bounds: `1 to ${MOST_CHOICES}`,
    tsType: '{ readonly [label: string]: string | object | null }',
  }),
  SystemOneScore: systemOne('score', 'Asks for a level of a scale.', ['criteria'], {
    description: 'What the levels mean, from the lowest to the highest; null: the number says it.',
    type: 'array',
    items: described,
    minItems: 1,
    maxItems: MOST_LEVELS,
    tsType: 'readonly (string | object | null)[]',
  }),
  DecisionInputItem: {
    description: 'An item of the input: a message, a call or its result.',
    type: 'object',
    properties: {
      type: {
        enum: [
          'message',
          'function_call',
          'function_call_output',
          'custom_tool_call',
          'custom_tool_call_output',
        ],
      },
    },
    ...s.when(
      { required: ['type'] },
      s.byField('type', {
        message: 'DecisionInputMessage',
        function_call: 'ResponseFunctionCallItem',
        function_call_output: 'ResponseFunctionResultItem',
        custom_tool_call: 'ResponseCustomCallItem',
        custom_tool_call_output: 'ResponseCustomResultItem',
      }),
      s.ref('DecisionInputMessage'),
    ),
    tsType:
      'DecisionInputMessage | ResponseFunctionCallItem | ResponseFunctionResultItem | ResponseCustomCallItem | ResponseCustomResultItem',
  },
  DecisionInputMessage: s.branch('A message.', ['role', 'content'], {
    type: s.constant('Kind of the item; may be absent.', 'message'),
    role: s.oneOf('Who speaks.', ['user', 'assistant', 'system', 'developer']),
    content: {
      description: 'Text, or a list of parts.',
      type: ['string', 'array'],
      items: s.ref('DecisionPart'),
    },
    id: noEffect,
    status: noEffect,
    phase: noEffect,
  }),
  DecisionPart: s.kinds('A piece of a message or of instructions.', {
    input_text: 'ResponseTextPart',
    output_text: 'ResponseTextPart',
    refusal: 'ResponseRefusalPart',
    input_image: 'ResponseImagePart',
    input_json: 'DecisionJsonPart',
  }),
  DecisionJsonPart: s.variant(
    'input_json',
    'part',
    'JSON data; the model reads it as compact JSON text.',
    ['data'],
    {
      data: {
        description: 'An object, or a list of objects.',
        type: ['object', 'array'],
        items: { type: 'object' },
        additionalProperties: true,
        tsType: 'object',
      },
      prompt_cache_breakpoint: noEffect,
    },
  ),
  DecisionQuestion: s.kinds('A question.', {
    predicate: 'DecisionPredicate',
    choice: 'DecisionChoice',
    score: 'DecisionScore',
  }),
  DecisionPredicate: question('predicate', 'Asks whether something is true.', [], {
    criteria: s.objectOrNull('When the answer is yes, and when it is no.', {
      true: s.stringOrNull('When it is true.'),
      false: s.stringOrNull('When it is false.'),
    }),
  }),
  DecisionChoice: question('choice', 'Asks for one of several options.', ['choices'], {
    choices: s.list(
      'The options.',
      s.object('An option.', ['value'], {
        value: {
          description: 'The value that the answer names. A text and a boolean are different values.',
          type: ['string', 'boolean'],
          minLength: 1,
        },
        description,
      }),
      { minItems: 2, maxItems: MOST_CHOICES, bounds: 'each value once' },
    ),
  }),
  DecisionScore: question('score', 'Asks for a level of a scale.', ['levels'], {
    levels: s.list(
      'The levels, from the lowest to the highest.',
      s.object('A level.', ['label'], {
        label: s.string('Its name.', { minLength: 1 }),
        description,
      }),
      { minItems: 2, maxItems: MOST_LEVELS },
    ),
  }),
};
