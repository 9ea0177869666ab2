/** What drafts the next tokens of an answer: `speculation` and `prediction`. */
import { type Definitions, orNull, ref } from './schema.ts';

/** Ways to draft. */
export const DRAFT_METHODS = ['ngram', 'suffix', 'draft', 'mtp'] as const;
/** Most drafts of one step, and most tokens that a draft may have to stand behind. */
export const MAX_DRAFTS = 32;

/** Definitions of speculation. */
export const speculationDefinitions: Definitions = {
  Speculation: {
    if: { type: 'object' },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: ref('SpeculationSettings'),
    else: { enum: [false, 'auto', null], expected: 'false, auto, an object with a method, or null' },
    description: 'Whether tokens are drafted, and how.',
    tsType: "false | 'auto' | SpeculationSettings",
  },
  SpeculationSettings: {
    description: 'One way to draft tokens.',
    type: 'object',
    required: ['method'],
    properties: {
      method: {
        description:
          '`ngram` drafts what followed the same tokens in prompt or answer; `suffix` also what followed them in other answers of this runtime with the same adapter and `cache_salt`; `draft` asks a smaller model; `mtp` the layers of the model itself that predict more than one token, where its file has them.',
        enum: DRAFT_METHODS,
      },
      maxTokens: orNull('integer', {
        description: 'Drafts of one step at most; fewer where more would cost time.',
        default: 15,
        minimum: 1,
        maximum: MAX_DRAFTS,
      }),
      model: orNull('string', {
        description:
          'With `draft`, the smaller model: a path, a name or an `hf:` URI of a GGUF file with the same vocabulary.',
        minLength: 1,
      }),
      minMatch: orNull('integer', {
        description: 'Tokens that must have stood before what is drafted, by `ngram` and `suffix`.',
        default: 3,
        minimum: 1,
        maximum: MAX_DRAFTS,
      }),
    },
    additionalProperties: false,
  },
  Prediction: {
    description: 'What the answer will mostly be.',
    type: ['object', 'null'],
    required: ['type', 'content'],
    properties: {
      type: { description: 'The only kind there is.', const: 'content' },
      content: {
        description: 'The text, whole or as parts.',
        type: ['string', 'array'],
        items: ref('PredictionPart'),
      },
    },
    additionalProperties: false,
  },
  PredictionPart: {
    description: 'A part of a prediction.',
    type: 'object',
    required: ['type', 'text'],
    properties: {
      type: { description: 'The only kind there is.', const: 'text' },
      text: { description: 'The text.', type: 'string' },
    },
    additionalProperties: false,
  },
};
