/** Requests about tokens over HTTP, with vLLM's names. */
import * as s from './schema.ts';

const model: s.Schema = s.stringOrNull('Whose tokenizer. Absent, null or empty: the default model.');

export const tokenizerDefinitions: s.Definitions = {
  TokenizeBody: s.object(
    'A text to be turned into tokens. A body with `messages` is a chat completion request instead.',
    ['prompt'],
    {
      prompt: s.string('The text. The text of a special token is read as that token.'),
      model,
      add_special_tokens: s.flagOrNull(true, 'Adds the special tokens of the tokenizer around a text.'),
      return_token_strs: s.flagOrNull(false, 'Also returns the text of each token.'),
    },
  ),
  DetokenizeBody: s.object('Tokens to be turned into text.', ['tokens'], {
    tokens: s.list('Ids of the vocabulary.', { type: 'integer', minimum: 0 }),
    model,
  }),
};
