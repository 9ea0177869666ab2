/** Requests about tokens over HTTP, with vLLM's names. */
import type { Definitions, Schema } from './schema.ts';

const model: Schema = {
  description: 'Whose tokenizer. Absent, null or empty: the default model.',
  type: ['string', 'null'],
};

/** Definitions of these requests. */
export const tokenizerDefinitions: Definitions = {
  TokenizeBody: {
    description:
      'A text to be turned into tokens. A body with `messages` is a chat completion request instead.',
    type: 'object',
    required: ['prompt'],
    properties: {
      prompt: { description: 'The text. The texts of special tokens are read as those.', type: 'string' },
      model,
      add_special_tokens: {
        description: 'Adds the tokens that the model wants around a text.',
        type: ['boolean', 'null'],
        default: true,
      },
      return_token_strs: {
        description: 'Gives the text of each token too.',
        type: ['boolean', 'null'],
        default: false,
      },
    },
    additionalProperties: false,
  },
  DetokenizeBody: {
    description: 'Tokens to be turned into text.',
    type: 'object',
    required: ['tokens'],
    properties: {
      tokens: {
        description: 'Ids of the vocabulary.',
        type: 'array',
        items: { type: 'integer', minimum: 0 },
      },
      model,
    },
    additionalProperties: false,
  },
};
