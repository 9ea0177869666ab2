/** Requests about tokens over HTTP, with vLLM's names. */
import { type Definitions, list, object, orNull, type Schema, string } from './schema.ts';

const model: Schema = orNull('string', 'Whose tokenizer. Absent, null or empty: the default model.');

/** Definitions of these requests. */
export const tokenizerDefinitions: Definitions = {
  TokenizeBody: object(
    'A text to be turned into tokens. A body with `messages` is a chat completion request instead.',
    ['prompt'],
    {
      prompt: string('The text. The texts of special tokens are read as those.'),
      model,
      add_special_tokens: orNull('boolean', 'Adds the tokens that the model wants around a text.', {
        default: true,
      }),
      return_token_strs: orNull('boolean', 'Gives the text of each token too.', { default: false }),
    },
  ),
  DetokenizeBody: object('Tokens to be turned into text.', ['tokens'], {
    tokens: list('Ids of the vocabulary.', { type: 'integer', minimum: 0 }),
    model,
  }),
};
