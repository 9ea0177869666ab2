/** The request for embeddings: OpenAI's, with fields of vLLM. */
import { chatFields } from './messages.ts';
import * as s from './schema.ts';

/** Definitions of embeddings. */
export const embeddingDefinitions: s.Definitions = {
  EmbeddingRequest: s.object('A request for embeddings, the same in process and over HTTP.', ['input'], {
    input: s.textsOrIds(
      'What to embed: a text, token ids, or a list of either, each of which gets a vector.',
    ),
    model: s.stringOrNull(
      'A model of embeddings: a path, an `hf:` URI or an alias. Absent, null or empty: the default model.',
    ),
    dimensions: s.integerOrNull(
      'Keeps so many numbers of each vector, from its beginning: for models that were trained for it. Absent: all.',
      { minimum: 1, bounds: 'at most those of the model' },
    ),
    encoding_format: s.oneOf(
      '`base64` gives the 32-bit floats of a vector as one text, little-endian.',
      ['float', 'base64', null],
      { default: 'float' },
    ),
    normalize: s.flagOrNull(true, 'Whether vectors have the length 1, after `dimensions`.'),
    add_special_tokens: s.flagOrNull(
      true,
      'Adds the tokens that the model wants around a text. Inputs of ids stay as they are.',
    ),
    truncate_prompt_tokens: s.integerOrNull(
      'Keeps only this many tokens at the beginning of a text, and the token that the model wants at its end; -1 keeps as many as the model takes. Absent: a longer text is an error.',
      s.ALL_OR_SOME,
    ),
    user: s.stringOrNull('No effect.'),
    ...chatFields('timeout_ms', 'keep_alive'),
  }),
};
